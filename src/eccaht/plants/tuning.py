"""The numbers of the engine that were chosen, each with what it trades.

What mathematics or a file's layout fixes stands where it is used; limits of what a user may give stand with their
check. Windows are the model's windows, spreads those of a sensor (robust units), nats -log of a share.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Tuning:
    """Numbers that decide what is an alarm, when it began and which sensors are wrong."""

    # detectors: how much a window deviates
    short_windows: int = 4  # a mean over more sees smaller faults, and sees all of them later
    long_windows: int = 12  # of drifts; longer sums take slow but normal changes for faults
    farthest_spreads: float = 30.0  # relations are fitted and judged up to here: one wild reading must not rule them
    negligible_deviation: float = 0.05  # spreads; smaller ones are never rare, however exact the relation
    negligible_drift: float = 0.2  # the same for a mean over long_windows, since levels wander

    # tails: how rare a deviation is
    tail_one_in: int = 100  # the largest hundredth shows how heavy a tail is; a smaller share holds too few windows
    least_tail_windows: int = 5  # but fewer windows than this show no tail
    common_tail_windows: float = 10.0  # the median sensor's tail counts as so many: it steadies short histories
    lightest_tail: float = 12.0  # exponent that is hardly heavier than a normal tail: larger ones would overstate
    heaviest_tail: float = 1.0  # that of a Cauchy distribution; heavier tails would hide every fault

    # thresholds: from which level on a detector raises an alarm
    cluster_gap_windows: int = 10  # values closer together are one alarm; a wider gap undercounts them
    most_clusters: int = 512  # kept in the model; more only serve rates of many alarms a history
    extrapolated_clusters: int = 12  # the highest ones give the slope beyond the history; fewer vary more
    least_clusters: float = 3.0  # a threshold that fewer clusters pass is extrapolated: one cluster is chance

    # alarms
    alarm_hold_windows: int = 4  # an alarm outlives its last passing window by so many; shorter splits incidents
    change_windows: int = 6  # an alarm whose last so many windows are normal about their mean is a change that lasts:
    # more keep a plant that has changed in alarm, and fewer do not tell a level from a fault that goes on growing
    steady_share: float = 0.75  # of these windows; a fault that goes on growing has fewer
    range_windows: int = 4  # so many windows beyond the range,
    range_of_windows: int = 8  # of so many, make a sensor out of range; a single wild reading does not
    standstill_factor: float = 2.0  # a sensor is stuck or silent beyond so many times its longest such time,
    most_standstill_factor: float = 8.0  # growing up to here for one that often comes to rest
    least_standstill_windows: int = 4  # rounded readings repeat by chance for fewer
    least_silence_windows: int = 10  # senders pause for fewer
    short_gap_windows: int = 5  # after a longer gap the windows before say nothing

    # dates
    later_windows: int = 512  # after an alarm its incident may have gone on for so long below the thresholds
    usual_rarity: float = 2.0  # nats; a sound sensor exceeds it in one window in seven, so that sums of it fall
    least_residual_spread: float = 0.3  # of residuals, whose unit is 1; less would date by noise

    # names
    named_by_chance: float = 0.05  # share of quiet stretches in which a sound sensor may be named
    most_named_apart: int = 20  # sensors beyond are ranked at once: each costs an elimination
    longest_stretch_windows: int = 300  # what lasts longer is named by its first windows
    renamed_each_windows: int = 12  # a watch names the sensors anew in so many windows after the alarm,
    renamed_every_windows: int = 16  # and then in every sixteenth, which costs little
    followed_windows: int = 128  # by the last windows of at most this number, since memory is bounded
    decimals_known_after: int = 30  # windows that show how readings are rounded

    # the level just before, about which sensors are named
    level_windows: int = 61  # odd; a longer median follows the plant less
    least_level_windows: int = 11  # of short histories, which have no more
    least_level_readings: int = 10  # fewer say no level: the history's median stands in
    score_knots: int = 25  # of normal scores; each costs memory for every sensor
    quiet_quantile: float = 0.9  # of the evidence in quiet stretches; beyond it a Pareto tail is fitted
    least_tail_slope: float = 1e-3  # of that tail: no evidence is infinitely rare
    longest_memory: float = 0.999  # of deviations: a random walk has no level
    held_out_parts: int = 3  # of the history, to count quiet evidence; more parts leave each shorter
    quiet_stretches: int = 60  # of each length in each part; more cost time and are not independent
    least_quiet_stretches: int = 20  # fewer say no quantile: chance stands in

    # fitting
    ridge_share: float = 1e-3  # of the mean variance; less makes near-duplicates judge each other by rounding
    still_spread_share: float = 0.2  # of the deviation; a smaller spread is that of a sensor that seldom moves
    rare_move_share: float = 0.01  # of windows; a sensor that moves in fewer is judged by the size of its moves
    least_score_variance: float = 0.25  # of normal scores, whose variance is 1; a resting sensor keeps some
    rounding_deviations: float = 3.0  # residuals within so many deviations of rounding are usual
    repeating_step: float = 0.1  # of usual moves; coarser steps repeat a value without being stuck

    # kinds of faults
    least_course_windows: int = 5  # a shorter course is called a step
    explained_share: float = 0.6  # of the power of a course, from which on a step or a drift explains it
    drift_margin: float = 0.05  # by which a drift must explain more than a step
    replay_share: float = 0.85  # readings with less of the power of their course have nothing to do with the others
    noise_memory: float = 0.35  # autocorrelation below which a course is noise

    @property
    def earlier_windows(self) -> int:
        """Windows before an alarm in which its incident may have begun: a drift is seen after half of them."""
        return 2 * self.long_windows


TUNING = Tuning()
