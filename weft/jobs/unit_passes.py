"""Writes passes over a unit of the model: the embedding, a layer, or norm and output."""

from __future__ import annotations

from weft.jobs.compute_times import ComputeTimes
from weft.jobs.expert_exchange import expert_exchange
from weft.jobs.formulas.messages import activation_bytes, key_value_bytes, routed_token_bytes
from weft.jobs.program_writer import GroupKind, ProgramWriter, Stream
from weft.jobs.training_plan import TrainingPlan


class UnitPasses:
    """Writes passes over units, numbered as in `unit_parameters`.

    Tensor parallelism: an all-reduce after attention and one after the feed-forward part (Shoeybi et al. 2019, section
    3); with sequence parallelism an all-gather before and a reduce-scatter after each, and in the backward pass a
    further all-gather of the part's input, concurrent with the computation (Korthikanti et al. 2022, section 4.2.2).
    Context parallelism: keys and values are gathered, again in the backward pass, and their gradients reduced
    (Grattafiori et al. 2024, section 3.3.2). Experts: tokens and gradients go to them and back. If tensor parallelism
    splits experts, its ranks gather the tokens that arrived at each of them.

    The loss's scalars that tensor ranks reduce are omitted.
    """

    def __init__(self, plan: TrainingPlan, writer: ProgramWriter, member: int) -> None:
        self._plan, self._writer = plan, writer
        self._times = ComputeTimes(plan)
        self._size = activation_bytes(plan)
        experts = plan.model.experts
        self._exchange = None if experts is None else expert_exchange(plan, experts, member)

    def forward(self, unit: int, name: str, category: str = "forward") -> None:
        """Write a forward pass."""
        if unit < 0:
            self._scatter()
        elif unit == self._plan.model.layers:
            self._gather()
            self._writer.compute(self._times.output(), category, name)
        else:
            self._layer_forward(unit, name, category)

    def backward(self, unit: int, name: str, *, with_weights: bool) -> None:
        """Write a backward pass, with the gradients of weights unless these are a separate pass."""
        if unit < 0:
            self._gather()
        elif unit == self._plan.model.layers:
            again = self._gather_again()
            self._writer.compute(self._times.output() * (2 if with_weights else 1), "backward", name)
            self._writer.wait_for([again])
            self._scatter()
        else:
            if self._plan.recomputation == "full":
                self._layer_forward(unit, name, "backward")
            self._feed_forward_backward(unit, name, with_weights)
            self._attention_backward(unit, name, with_weights)

    def weights(self, unit: int, name: str) -> None:
        """Write a pass for the gradients of weights."""
        if unit == self._plan.model.layers:
            self._writer.compute(self._times.output(), "backward", name)
        elif unit >= 0:
            times = self._times
            dense_ps = times.feed_forward(unit) + times.attention_weights(unit)
            self._writer.compute(self._experts_ps(unit) + dense_ps, "backward", name)

    def _layer_forward(self, layer: int, name: str, category: str) -> None:
        self._gather()
        self._context("allgather")
        self._writer.compute(self._times.attention_forward(layer), category, name)
        self._scatter()
        experts = self._plan.model.experts_of(layer)
        # Without shared experts only the router computes, on each rank's own tokens.
        has_dense = experts is None or experts.shared > 0
        if has_dense:
            self._gather()
        self._writer.compute(self._times.feed_forward(layer), category, name)
        if has_dense:
            self._scatter()
        if experts:
            self._routed(layer, name, category, passes=1)

    def _feed_forward_backward(self, layer: int, name: str, with_weights: bool) -> None:
        passes = 2 if with_weights else 1
        experts = self._plan.model.experts_of(layer)
        if experts:
            self._routed(layer, name, "backward", passes)
        duration_ps = self._times.feed_forward(layer) * passes
        if experts and not experts.shared:
            self._writer.compute(duration_ps, "backward", name)
            return
        self._gather()
        again = self._gather_again()
        self._writer.compute(duration_ps, "backward", name)
        self._writer.wait_for([again])
        self._scatter()

    def _attention_backward(self, layer: int, name: str, with_weights: bool) -> None:
        weights_ps = self._times.attention_weights(layer) if with_weights else 0
        self._gather()
        self._context("allgather")
        again = self._gather_again()
        self._writer.compute(self._times.attention_inputs(layer) + weights_ps, "backward", name)
        self._context("reducescatter")
        self._writer.wait_for([again])
        self._scatter()

    def _gather(self) -> None:
        """Have tensor ranks gather the tokens that sequence parallelism divides."""
        if self._plan.parallel.sequence:
            self._tensor("allgather", self._size)

    def _gather_again(self) -> int | None:
        """Gather an input that sequence parallelism has divided, concurrently with later operations."""
        if not self._plan.parallel.sequence:
            return None
        return self._writer.beside(GroupKind.TENSOR, "allgather", self._size, Stream.TENSOR)

    def _scatter(self) -> None:
        """Have tensor ranks sum their partial results."""
        self._tensor("reducescatter" if self._plan.parallel.sequence else "allreduce", self._size)

    def _tensor(self, collective: str, size_bytes: int) -> None:
        self._writer.collective(GroupKind.TENSOR, collective, size_bytes, Stream.TENSOR)

    def _context(self, collective: str) -> None:
        size_bytes = key_value_bytes(self._plan)
        self._writer.collective(GroupKind.CONTEXT, collective, size_bytes, Stream.CONTEXT)

    def _routed(self, layer: int, name: str, category: str, passes: int) -> None:
        plan, exchange = self._plan, self._exchange
        assert exchange is not None, "a layer with experts"
        there, back = (routed_token_bytes(plan, each) for each in ("dispatch", "activations"))
        came = round(plan.gathered_copies * exchange.load)
        exchange.dispatch(self._writer, there)
        self._tensor("allgather", came * there)
        self._writer.compute(self._experts_ps(layer) * passes, category, name)
        self._tensor("reducescatter", came * back)
        exchange.combine(self._writer, back)

    def _experts_ps(self, layer: int) -> int:
        return round(self._times.experts(layer) * (self._exchange.load if self._exchange else 1.0))
