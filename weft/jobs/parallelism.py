"""How ranks divide a training job: the part of model and data that each has, and the groups it communicates in.

Ranks are numbered as Megatron-LM numbers them: tensor innermost, then context, data, and pipeline outermost. Ranks that
share experts' parameters are consecutive in context and data.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

from weft.jobs.pipeline_schedules import ScheduleName
from weft.quantities.definitions import whole
from weft.quantities.example import Example
from weft.quantities.section import Section

Degree = Annotated[int, whole(1, 1 << 16)]


class Place(NamedTuple):
    """Coordinates of a rank along the axes of parallelism."""

    tensor: int
    context: int
    data: int
    pipeline: int


class Parallelism(Section):
    """Degrees of parallelism. The product of `tensor`, `context`, `pipeline` and `data` is the number of ranks."""

    tensor: Degree = 1
    """Ranks that share each layer (Shoeybi et al. 2019)."""
    sequence: bool = False
    """Whether these ranks also divide the rest of a layer along the sequence (Korthikanti et al. 2022)."""
    context: Degree = 1
    """Ranks that share each sequence; they gather keys and values (Grattafiori et al. 2024, section 3.3.2)."""
    pipeline: Degree = 1
    """Stages, each of consecutive layers."""
    schedule: ScheduleName = "1f1b"
    """Order of each stage's passes."""
    virtual_stages: Annotated[int, whole(1, 1 << 10), Example("2", (".pipeline=2", ".schedule=interleaved"))] = 1
    """Parts of the model per stage, in the interleaved schedule."""
    data: Degree = 1
    """Replicas, each of which computes other sequences."""
    zero: Annotated[int, whole(0, 3, example="1")] = 0
    """ZeRO stage (Rajbhandari et al. 2020): replicas shard the optimizer's state (1), gradients, too (2), weights, too
    (3)."""
    expert: Degree = 1
    """Ranks along context and data that share the experts of each layer."""

    @property
    def rank_count(self) -> int:
        """Ranks of the job."""
        return self.tensor * self.context * self.data * self.pipeline

    @property
    def replicas(self) -> int:
        """Ranks that have the same part of the dense parameters."""
        return self.context * self.data

    @property
    def expert_replicas(self) -> int:
        """Ranks that have the same part of the experts' parameters."""
        return self.replicas // self.expert

    @property
    def sequence_shares(self) -> int:
        """Ranks that share the parts of a layer that tensor parallelism alone does not divide."""
        return self.tensor if self.sequence else 1

    def place(self, rank: int) -> Place:
        """Return the coordinates of a rank."""
        rest, tensor = divmod(rank, self.tensor)
        rest, context = divmod(rest, self.context)
        pipeline, data = divmod(rest, self.data)
        return Place(tensor, context, data, pipeline)

    def rank_at(self, place: Place) -> int:
        """Return the rank with these coordinates."""
        replica = (place.pipeline * self.data + place.data) * self.context + place.context
        return replica * self.tensor + place.tensor

    def stage_ranks(self, stage: int) -> range:
        """Return the ranks of a pipeline stage."""
        count = self.rank_count // self.pipeline
        return range(stage * count, (stage + 1) * count)

    def tensor_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that share a rank's layers."""
        first = rank - rank % self.tensor
        return tuple(range(first, first + self.tensor))

    def context_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that share a rank's sequences."""
        place = self.place(rank)
        return tuple(self.rank_at(place._replace(context=each)) for each in range(self.context))

    def data_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks along context and data that have the same dense parameters as a rank."""
        return self._replicas_of(rank, range(self.replicas))

    def expert_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that share a rank's experts."""
        own = self._replica(rank)
        first = own - own % self.expert
        return self._replicas_of(rank, range(first, first + self.expert))

    def expert_member(self, rank: int) -> int:
        """Return a rank's number among the ranks that share its experts."""
        return self._replica(rank) % self.expert

    def expert_data_group(self, rank: int) -> tuple[int, ...]:
        """Return the ranks that have the same expert parameters as a rank."""
        return self._replicas_of(rank, range(self.expert_member(rank), self.replicas, self.expert))

    def end_stages_group(self, rank: int) -> tuple[int, ...]:
        """Return a rank's peers in the first and the last stage."""
        return tuple(self.stage_peer(rank, stage) for stage in (0, self.pipeline - 1))

    def stage_peer(self, rank: int, stage: int) -> int:
        """Return the rank of another stage with which a rank exchanges activations."""
        return self.rank_at(self.place(rank)._replace(pipeline=stage))

    def layers_of(self, layers: int, stage: int, part: int = 0) -> range:
        """Return the layers in a part of a stage.

        Parts differ by at most one layer. The first and the last part, which hold the embedding and the output, are the
        last to get an extra one (as in Grattafiori et al. 2024, section 3.3.2).
        """
        parts = self.pipeline * self.virtual_stages
        each, more = divmod(layers, parts)
        order = [*range(1, parts - 1), 0, parts - 1]
        larger = sorted(order[:more])
        number = part * self.pipeline + stage
        begin = number * each + sum(1 for one in larger if one < number)
        return range(begin, begin + each + (number in larger))

    def _replica(self, rank: int) -> int:
        place = self.place(rank)
        return place.data * self.context + place.context

    def _replicas_of(self, rank: int, replicas: range) -> tuple[int, ...]:
        place = self.place(rank)
        return tuple(
            self.rank_at(place._replace(data=each // self.context, context=each % self.context)) for each in replicas
        )
