import numpy as np

from tests.refusals import refused
from weft.errors import BadInputError
from weft.run.traffic_kinds.collective import mlp_gradients


def test_one_flat_float32_vector_a_rank_of_the_models_size():
    gradients = mlp_gradients(4, seed=1, hidden_units=16)
    assert len(gradients) == 4
    for each in gradients:
        assert each.dtype == np.float32
        assert each.shape == (64 * 16 + 16 + 16 * 10 + 10,)
        assert np.all(np.isfinite(each))
        assert np.any(each)


def test_shards_differ_and_a_seed_repeats():
    first, again, other = mlp_gradients(2, 1, 8), mlp_gradients(2, 1, 8), mlp_gradients(2, 2, 8)
    assert [each.tobytes() for each in first] == [each.tobytes() for each in again]
    assert first[0].tobytes() != first[1].tobytes()
    assert first[0].tobytes() != other[0].tobytes()


def test_gradients_of_equal_shards_average_to_the_whole_sets():
    """Data parallelism: the mean of the shards' gradients, weighted by their sizes, is the whole batch's."""
    (whole,) = mlp_gradients(1, seed=3, hidden_units=8)
    shards = mlp_gradients(3, seed=3, hidden_units=8)  # 1,800 images are three times 600
    assert np.allclose(np.mean(shards, axis=0), whole, rtol=1e-3, atol=1e-6)


def test_gradients_are_the_losses_slopes():
    """The output biases' gradients: predicted minus true frequencies, which sum to zero over the classes."""
    (whole,) = mlp_gradients(1, seed=5, hidden_units=8)
    assert abs(whole[-10:].sum()) < 1e-5


def test_more_ranks_than_images_are_refused():
    with refused(BadInputError, problem="1800 images"):
        mlp_gradients(1801, seed=1)
