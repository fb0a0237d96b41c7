"""How long a rank's computations take: operations over the rate reached, or bytes over bandwidth."""

from __future__ import annotations

from weft.jobs.formulas.flops import layer_flops, output_flops
from weft.jobs.formulas.memory import OPTIMIZER_BYTES
from weft.jobs.formulas.parameters import rank_parameters
from weft.jobs.training_plan import TrainingPlan
from weft.quantities.units import PS_PER_S


class ComputeTimes:
    """Durations of a micro-batch's computations on a rank, in ps.

    A backward pass takes twice the operations of a forward one, half of them for weight gradients. Scores have no
    weights.
    """

    def __init__(self, plan: TrainingPlan) -> None:
        self._plan = plan
        self._flops_per_s = plan.accelerator.flops_per_s(plan.precisions.compute)

    def attention_forward(self, layer: int) -> int:
        """Return the time of a layer's attention, forward."""
        flops = layer_flops(self._plan.model, layer)
        return self._of(flops.attention + flops.scores)

    def attention_inputs(self, layer: int) -> int:
        """Return the time of attention's input gradients; selective recomputation adds the scores."""
        flops = layer_flops(self._plan.model, layer)
        again = flops.scores if self._plan.recomputation == "selective" else 0
        return self._of(flops.attention + 2 * flops.scores + again)

    def attention_weights(self, layer: int) -> int:
        """Return the time of attention's weight gradients."""
        return self._of(layer_flops(self._plan.model, layer).attention)

    def feed_forward(self, layer: int) -> int:
        """Return the time of a feed-forward part, or router and shared experts; each kind of gradient takes as long."""
        return self._of(layer_flops(self._plan.model, layer).feed_forward)

    def experts(self, layer: int) -> int:
        """Return the time of routed experts under balanced routing; each kind of gradient takes as long."""
        return self._of(layer_flops(self._plan.model, layer).experts)

    def output(self) -> int:
        """Return the time of the output matrix; each kind of gradient takes as long."""
        return self._of(output_flops(self._plan.model))

    def optimizer(self, stage: int) -> int:
        """Return the time of Adam on a rank's share of the parameters, which memory bandwidth bounds.

        For each parameter it reads the gradient, reads and writes its state, and writes the weight.
        """
        plan, parallel = self._plan, self._plan.parallel
        dense, experts = rank_parameters(plan, stage)
        if parallel.zero:
            dense, experts = -(-dense // parallel.replicas), -(-experts // parallel.expert_replicas)
        each = plan.precisions.bytes_of("gradients") + 2 * OPTIMIZER_BYTES + plan.precisions.bytes_of("weights")
        return round((dense + experts) * each / plan.accelerator.memory_bytes_per_s * PS_PER_S)

    def _of(self, flops_per_token: int) -> int:
        flops = self._plan.rank_tokens * flops_per_token / self._plan.parallel.tensor
        return round(flops / self._flops_per_s * PS_PER_S)
