"""`atb_loss`: its value and gradients against sums over all pairs, written from the definition."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from support.strategies import probabilities, rows  # noqa: E402

import truthcal as tc  # noqa: E402
from truthcal.torch import atb_loss  # noqa: E402


def loss_of_pairs(p, y, unbiased=False):
    """The definition, as a function that autograd could differentiate away from ties."""
    c, n = p - y, len(p)
    pairs = c[:, None] * c * (1 - (p[:, None] - p).abs())
    return (pairs.sum() - pairs.diagonal().sum()) / (n * (n - 1)) if unbiased else pairs.mean()


def gradient_of_pairs(p, y, unbiased=False):
    """The derivatives of docs/guide/torch.md, one prediction at a time."""
    c, n = p - y, len(p)
    out = torch.zeros_like(p)
    for k, j in itertools.product(range(n), repeat=2):
        if not (unbiased and j == k):
            gap = p[k] - p[j]
            out[k] += c[j] * (1 - gap.abs()) - c[k] * c[j] * torch.sign(gap)
    return 2 * out / (n * (n - 1) if unbiased else n * n)


def gradient_of(p, y, **options):
    p = p.clone().requires_grad_()
    atb_loss(p, y, **options).backward()
    return p.grad


def random_rows(n, seed=0, decimals=None):
    generator = torch.Generator().manual_seed(seed)
    p = torch.rand(n, generator=generator, dtype=torch.float64)
    p = p if decimals is None else p.round(decimals=decimals)
    return p, (torch.rand(n, generator=generator) < 0.5).double()


@given(rows(min_size=2), st.booleans())
def test_value_and_gradient_are_those_of_all_pairs(data, unbiased):
    y, p = (torch.tensor(column, dtype=torch.float64) for column in data)
    assert atb_loss(p, y, unbiased=unbiased).item() == pytest.approx(loss_of_pairs(p, y, unbiased).item(), abs=1e-14)
    expected = gradient_of_pairs(p, y, unbiased).numpy()
    np.testing.assert_allclose(gradient_of(p, y, unbiased=unbiased), expected, rtol=0, atol=1e-14)


@given(rows(outcomes=probabilities))
def test_value_is_that_of_atb_with_fractions_too(data):
    y, p = data
    if set(p) <= {0.0, 1.0} and not set(y) <= {0.0, 1.0}:
        return  # tc.atb refuses: the arguments look swapped
    loss = atb_loss(torch.tensor(p, dtype=torch.float64), torch.tensor(y, dtype=torch.float64))
    assert loss.item() == pytest.approx(tc.atb(y, p), rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("decimals", [None, 2])
def test_many_rows(decimals):
    p, y = random_rows(20_000, decimals=decimals)
    assert atb_loss(p, y).item() == pytest.approx(tc.atb(y.numpy(), p.numpy()), rel=1e-12)


@pytest.mark.parametrize("unbiased", [False, True])
def test_derivatives_agree_with_differences(unbiased):
    p, y = random_rows(9)

    def loss(q):
        return atb_loss(q, y, unbiased=unbiased)

    p.requires_grad_()
    assert torch.autograd.gradcheck(loss, (p,), eps=1e-7)
    assert torch.autograd.gradgradcheck(loss, (p,), eps=1e-7)


def test_gradient_at_ties_is_the_mean_of_both_sides():
    p, y = random_rows(12, decimals=1)
    assert len(p.unique()) < len(p)
    gradient, step = gradient_of(p, y), 1e-6
    for k, unit in enumerate(torch.eye(len(p), dtype=torch.float64)):
        sides = (loss_of_pairs(p + step * unit, y) - loss_of_pairs(p - step * unit, y)) / (2 * step)
        assert gradient[k].item() == pytest.approx(sides.item(), abs=1e-7)


def test_second_derivatives_are_not_lost_in_a_chain():
    """The penalty on gradients of a model: its derivative needs those of the loss."""
    logits, y = torch.linspace(-2, 2, 7, dtype=torch.float64).requires_grad_(), torch.tensor([0, 1, 0, 1, 0, 1, 1])
    second = []
    for loss in (atb_loss, loss_of_pairs):
        (slope,) = torch.autograd.grad(loss(torch.sigmoid(logits), y), logits, create_graph=True)
        second.append(torch.autograd.grad(slope.square().sum(), logits)[0].numpy())
    np.testing.assert_allclose(*second, rtol=1e-10)


@pytest.mark.parametrize("size", [2, 3, 5])
def test_mean_of_unbiased_loss_does_not_depend_on_batch_size(size):
    """Exactly, over all batches of this size; that of the other loss does, by the mean squared error."""
    p, y = random_rows(7, decimals=1)
    batches = [list(rows) for rows in itertools.combinations(range(7), size)]
    mean = np.mean([atb_loss(p[rows], y[rows], unbiased=True).item() for rows in batches])
    assert mean == pytest.approx(atb_loss(p, y, unbiased=True).item(), abs=1e-14)
    biased = np.mean([atb_loss(p[rows], y[rows]).item() for rows in batches])
    brier = (p - y).square().mean().item()
    assert biased == pytest.approx(brier / size + (size - 1) / size * mean, abs=1e-14)
    assert biased > mean + 0.01


def test_unbiased_loss_is_the_excess():
    p, y = random_rows(50)
    excess = tc.atb_summary(y.numpy(), p.numpy()).excess
    assert atb_loss(p, y, unbiased=True).item() == pytest.approx(excess, rel=1e-12)


@pytest.mark.parametrize(
    ("dtype", "of_loss"),
    [(torch.float64, torch.float64), (torch.float32, torch.float32), (torch.bfloat16, torch.float32), (torch.float16, torch.float32)],
    ids=str,
)  # fmt: skip
def test_short_floats_are_computed_in_double_precision(dtype, of_loss):
    p, y = random_rows(300)
    p = p.to(dtype)
    loss, gradient = atb_loss(p, y.bool()), gradient_of(p, y.bool())
    assert loss.dtype == of_loss
    assert gradient.dtype == dtype
    assert loss.item() == pytest.approx(loss_of_pairs(p.double(), y).item(), rel=1e-6)
    expected = gradient_of(p.double(), y).numpy()
    np.testing.assert_allclose(gradient.double(), expected, rtol=2 * torch.finfo(dtype).eps, atol=1e-6)


def test_autocast_changes_nothing():
    layer, x, y = torch.nn.Linear(3, 1), torch.randn(64, 3), torch.rand(64) < 0.5
    with torch.autocast("cpu", dtype=torch.bfloat16):
        p = torch.sigmoid(layer(x))
        loss = atb_loss(p, y)
    assert p.dtype == torch.bfloat16
    assert loss.item() == pytest.approx(atb_loss(p.double(), y).item(), rel=1e-6)
    loss.backward()
    assert torch.isfinite(layer.weight.grad).all()


def test_columns_of_one_and_the_gradient_of_their_shape():
    p, y = random_rows(20)
    gradient = gradient_of(p[:, None], y)
    assert gradient.shape == (20, 1)
    assert torch.equal(gradient[:, 0], gradient_of(p, y[:, None]))


def test_outcomes_get_no_gradient_and_inputs_stay():
    p, y = random_rows(20)
    before, y = p.clone(), y.requires_grad_()
    p.requires_grad_()
    atb_loss(p, y).backward()
    assert y.grad is None
    assert torch.equal(p, before)


def test_function_transforms_and_compilation():
    p, y = random_rows(20)
    expected = gradient_of(p, y)
    assert torch.equal(torch.func.grad(lambda q: atb_loss(q, y))(p), expected)
    compiled = torch.compile(lambda q: 2 * atb_loss(q, y), backend="aot_eager")
    leaf = p.clone().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about itself
        compiled(leaf).backward()
    np.testing.assert_allclose(leaf.grad, 2 * expected, rtol=1e-12)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # of torch, about itself
def test_forward_mode_and_vmap_are_as_documented():
    p, y = random_rows(6)
    leaf = p.clone().requires_grad_()
    gradient = torch.autograd.grad(atb_loss(leaf, y), leaf, create_graph=True)[0]
    rows_of_hessian = [torch.autograd.grad(entry, leaf, retain_graph=True)[0] for entry in gradient]
    hessian = torch.autograd.functional.hessian(lambda q: atb_loss(q, y), p)
    np.testing.assert_allclose(hessian, torch.stack(rows_of_hessian), rtol=1e-12)
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(lambda q: atb_loss(q, y), (p,), (p,))
    with pytest.raises(RuntimeError, match="vmap"):
        torch.func.hessian(lambda q: atb_loss(q, y))(p)
    with pytest.raises(RuntimeError, match="vmap"):
        torch.vmap(lambda q: atb_loss(q, y))(torch.stack([p, p]))


def test_training_lowers_the_loss():
    torch.manual_seed(0)
    x = torch.randn(400, 1)
    y = torch.rand(400, 1) < torch.sigmoid(x)
    layer = torch.nn.Linear(1, 1)
    torch.nn.init.constant_(layer.weight, 4.0)  # overconfident
    optimizer, losses = torch.optim.Adam(layer.parameters(), lr=0.1), []
    for _ in range(60):
        optimizer.zero_grad()
        loss = atb_loss(torch.sigmoid(layer(x)), y, unbiased=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[0] > 0.002
    assert losses[-1] < 0.0002


TWO = torch.tensor([0.2, 0.7])
INVALID = [
    ((torch.tensor([-0.5, 2.5]), torch.tensor([0, 1])), {}, ValueError, r"`p` must lie in \[0, 1\]; found -0.5 at row 0 \(2 of 2 rows\). Logits\? Pass torch.sigmoid\(logits\)"),
    ((torch.tensor([50.0, 2.5]), torch.tensor([0, 1])), {}, ValueError, r"`p` must lie in \[0, 1\]; .* Percentages\? Divide by 100.$"),
    ((torch.tensor([0.0, 1.0]), TWO), {}, ValueError, r"`p` has only 0 and 1, but `y` has fractions; the arguments look swapped: predictions come first, atb_loss\(p, y\)"),
    ((torch.tensor([0.0, 1.0]), TWO.clone().requires_grad_()), {}, ValueError, r"`y` requires a gradient, but `p` does not; the arguments look swapped: .* If they are not swapped, pass y.detach\(\)"),
    ((TWO, TWO.clone().requires_grad_()), {}, ValueError, "look swapped"),
    ((TWO.to(torch.float8_e4m3fn), torch.ones(2)), {}, TypeError, r"`p` must have floats of at least 16 bits; got torch.float8_e4m3fn. Convert it with .float\(\)"),
    ((TWO, torch.ones(2).to(torch.float8_e5m2)), {}, TypeError, "`y` must have floats of at least 16 bits; got torch.float8_e5m2"),
    ((torch.tensor([0.5, torch.nan]), torch.tensor([0, 1])), {}, ValueError, r"`p` has a missing value \(nan\) at row 1"),
    ((TWO, torch.tensor([0, 2])), {}, ValueError, r"`y` must lie in \[0, 1\]; found 2.0 at row 1 .* pass `y == k`"),
    ((TWO, torch.tensor([0.0, torch.nan])), {}, ValueError, r"`y` has a missing value"),
    ((TWO, torch.tensor([0, 1, 1])), {}, ValueError, "`p` has 2 rows but `y` has 3"),
    ((torch.tensor([0, 1]), TWO), {}, TypeError, "`p` must contain floats; got torch.int64"),
    ((torch.rand(2, 3), torch.zeros(2)), {}, ValueError, r"`p` must have shape \(N,\) or \(N, 1\); got \(2, 3\)"),
    ((TWO, [0, 1]), {}, TypeError, "`y` must be a torch tensor; got list"),
    ((TWO, torch.zeros(2, device="meta")), {}, ValueError, "`p` is on cpu, but `y` on meta"),
    ((torch.empty(0), torch.empty(0)), {}, ValueError, "`p` is empty; at least one row is needed"),
    ((TWO[:1], torch.ones(1)), {"unbiased": True}, ValueError, r"`p` has one row, but unbiased=True needs at least two. .*drop_last=True"),
    ((TWO, torch.ones(2)), {"unbiased": 1}, TypeError, "`unbiased` must be True or False; got 1"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "options", "error", "message"), INVALID, ids=range(len(INVALID)))
def test_invalid_input_is_refused(arguments, options, error, message):
    with pytest.raises(error, match=message):
        atb_loss(*arguments, **options)


def test_saturated_predictions_of_a_model_are_not_swapped():
    """In a late epoch, a whole batch may be predicted as 0 or 1 exactly; soft labels are fractions."""
    logits = torch.tensor([-200.0, 200.0], requires_grad=True)
    p, y = torch.sigmoid(logits), torch.tensor([0.1, 0.9])
    assert atb_loss(p, y).item() == pytest.approx(loss_of_pairs(p.detach(), y).item())


def test_one_row_is_its_squared_error():
    assert atb_loss(torch.tensor([0.2]), torch.tensor([1])).item() == pytest.approx(0.64)
