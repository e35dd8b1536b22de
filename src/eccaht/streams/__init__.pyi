from .shifts import Shift as Shift, UnknownShift as UnknownShift, log_ratio as log_ratio
from .covariance import (
    Covariance as Covariance,
    Dense as Dense,
    Diagonal as Diagonal,
    LowRankPlusDiagonal as LowRankPlusDiagonal,
    as_covariance as as_covariance,
    effective_rank as effective_rank,
    families as families,
    with_ridge as with_ridge,
)
from .measurements import (
    AtMost as AtMost,
    Available as Available,
    Box as Box,
    Budget as Budget,
    Constraint as Constraint,
    Design as Design,
    Levels as Levels,
    Noise as Noise,
    NonNegative as NonNegative,
    OneOf as OneOf,
    OnePerGroup as OnePerGroup,
    Readout as Readout,
    Unlimited as Unlimited,
)
from .sets import Hypotheses as Hypotheses, SetPrior as SetPrior
from .problem import Problem as Problem
from .posterior import (
    Capabilities as Capabilities,
    Confidence as Confidence,
    Enumeration as Enumeration,
    Likelihood as Likelihood,
    Neighbourhood as Neighbourhood,
    Posterior as Posterior,
    PseudoLikelihood as PseudoLikelihood,
    Ranker as Ranker,
    Ranking as Ranking,
    SufficientStatistics as SufficientStatistics,
    likelihood_of as likelihood_of,
    neighbourhood as neighbourhood,
)
from .designs import pair_design as pair_design
from .stopping import Gap as Gap, LikelihoodRatio as LikelihoodRatio, PosteriorProbability as PosteriorProbability
from .policies import (
    BudgetWarning as BudgetWarning,
    CATALOGUE as CATALOGUE,
    DEFAULT_POLICY as DEFAULT_POLICY,
    Entry as Entry,
    Policy as Policy,
    from_ask_tell as from_ask_tell,
    load_policy as load_policy,
    make_policy as make_policy,
    policy_names as policy_names,
)
from .run import (
    Hits as Hits,
    Reading as Reading,
    Simulator as Simulator,
    Step as Step,
    World as World,
    estimated_shifts as estimated_shifts,
    search as search,
    stays_right as stays_right,
    steps as steps,
)
from .watch import Alarm as Alarm, Kind as Kind, State as State, Time as Time, Watch as Watch
