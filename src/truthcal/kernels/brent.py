"""Brent's method for many roots at once."""

from truthcal.kernels.jit import Rows, interpreted_first

# Rows of the state: previous, current and opposite points, their values, and the last two steps.
N_STATE = 8
X_CUR, F_CUR = 1, 4


@interpreted_first
def brent_steps(state: Rows, xtol: Rows, rtol: float, active: Rows) -> None:
    """Move the current point of each active search to the next one, or end the search there if it is close enough.

    The caller evaluates functions at the new points. The same steps as in scipy's `brentq`, which takes one function.
    """
    for i in range(active.size):
        if not active[i]:
            continue
        x_pre, x_cur, x_blk, f_pre, f_cur, f_blk, s_pre, s_cur = state[:, i]
        if f_pre != 0.0 and f_cur != 0.0 and (f_pre < 0.0) != (f_cur < 0.0):
            x_blk, f_blk = x_pre, f_pre
            s_pre = s_cur = x_cur - x_pre
        if abs(f_blk) < abs(f_cur):
            x_pre, x_cur, x_blk = x_cur, x_blk, x_cur
            f_pre, f_cur, f_blk = f_cur, f_blk, f_cur
        delta = (xtol[i] + rtol * abs(x_cur)) / 2.0
        bisection = (x_blk - x_cur) / 2.0
        active[i] = not (f_cur == 0.0 or abs(bisection) < delta)
        if active[i]:
            trial = bisection
            if abs(s_pre) > delta and abs(f_cur) < abs(f_pre):
                if x_pre == x_blk:  # secant
                    trial = -f_cur * (x_cur - x_pre) / (f_cur - f_pre)
                else:  # inverse quadratic
                    d_pre, d_blk = (f_pre - f_cur) / (x_pre - x_cur), (f_blk - f_cur) / (x_blk - x_cur)
                    trial = -f_cur * (f_blk * d_blk - f_pre * d_pre) / (d_blk * d_pre * (f_blk - f_pre))
                if not 2.0 * abs(trial) < min(abs(s_pre), 3.0 * abs(bisection) - delta):
                    s_cur = trial = bisection
            else:
                s_cur = bisection
            s_pre, s_cur = s_cur, trial
            x_pre, f_pre = x_cur, f_cur
            x_cur += s_cur if abs(s_cur) > delta else delta if bisection > 0.0 else -delta
        state[0, i], state[1, i], state[2, i], state[3, i] = x_pre, x_cur, x_blk, f_pre
        state[4, i], state[5, i], state[6, i], state[7, i] = f_cur, f_blk, s_pre, s_cur
