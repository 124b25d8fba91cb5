"""The answers of the page of results: their words follow from the figures, and their tables from one definition."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.campaign import steps
from benchmarks.experiments import EXPERIMENTS
from benchmarks.page import answers, priorities, values
from benchmarks.page.curves import NAMES, write_curves
from benchmarks.page.files import FOES, Files
from benchmarks.page.formats import one_line
from benchmarks.page.render import render, write_page
from benchmarks.studies.registry import STUDIES
from benchmarks.studies.statistics import summary
from tests.conftest import ROOT
from workflow_rl.errors import UserError

RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "results.md"
Change = Callable[[str, Callable[[dict[str, Any]], None]], str]
STORING = {name for name, experiment in EXPERIMENTS.items() if experiment.stores}


def answer(text: str, number: int) -> str:
    return re.split(r"^#+ ", text.split(f"### {number}. ")[1], flags=re.MULTILINE)[0]


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    for path in RESULTS.glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


@pytest.fixture
def changed(copied: Path) -> Change:
    """The page after a change of some figures."""

    def change(name: str, edit: Callable[[dict[str, Any]], None]) -> str:
        path = copied / f"{name}.json"
        found = json.loads(path.read_text("utf-8"))
        edit(found["figures"])
        path.write_text(json.dumps(found), "utf-8")
        return render(copied, PAGE)

    return change


def rewrite(path: Path, **about: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | about), "utf-8")


def test_the_page_of_results_is_up_to_date() -> None:
    """Written anew by ``python -m benchmarks page`` whenever a result changes; never by hand."""
    assert render(RESULTS, PAGE) == PAGE.read_text("utf-8")


def test_the_page_changes_with_the_figures(changed: Change) -> None:
    def worse(figures: dict[str, Any]) -> None:
        figures["rows"]["general"]["cells"]["bline"]["100"]["iqm"] = -12.34

    lines = changed("study_baselines", worse).splitlines()
    assert any(line.startswith("| general PPO |") and "-12.34" in line for line in lines)


def test_what_the_page_says_about_obedience_follows_from_the_figures(changed: Change) -> None:
    def obedience(difference_: float, low: float, high: float) -> Callable[[dict[str, Any]], None]:
        def change(figures: dict[str, Any]) -> None:
            for red in ("bline", "meander"):
                found = {"difference": difference_, "low": low, "high": high, "clear": low > 0 or high < 0}
                figures["answers"][red]["obedience"] = found
                figures["answers"][red]["order"] = found
                figures["answers"][red]["order_searched"] = found

        return change

    given = ((-3, -4, -2), (-0.4, -0.6, -0.2), (0, -1, 1), (2, 1, 3))
    dear, cheap, free, better = (one_line(changed("study_baselines", obedience(*figures))) for figures in given)
    assert "obedience costs (-3.00 [-4.00, -2.00])" in dear
    assert "and after full ones: against B_line -3.00 [-4.00, -2.00] and -3.00 [-4.00, -2.00];" in dear
    assert "obedience costs a little (-0.40 [-0.60, -0.20])" in cheap
    assert "obedience and freedom are statistically indistinguishable (+0.00 [-1.00, +1.00])" in free
    assert "obedience gains (+2.00 [+1.00, +3.00])" in better


def test_verdicts_on_the_documents_claims_follow_from_the_figures() -> None:
    def stopped(low: float, high: float) -> str:
        return answers.early_stopping({"user first": {"low": low, "high": high}})

    assert (stopped(-0.2, 0.9), stopped(-0.2, 5.0), stopped(2.0, 5.0)) == ("yes", "not shown", "no")

    def searched(random: int) -> str:
        names = {"gp-ucb": 5, "random": random, "round-robin": 1}
        return answers.gp_ucb({name: {"enterprise_before_user_in_best": n, "searches": 5} for name, n in names.items()})

    assert (searched(2), searched(4), searched(5)) == ("yes", "no", "cannot be judged here: all succeed")

    def kinds(one: Any, some: Any, many: Any) -> dict[str, Any]:
        return {answers.ONE: one, answers.SOME: some, answers.MANY: many}

    noises = [kinds(*({"noise": {"iqm": value}} for value in (10.0, 3.0, many))) for many in (1.0, 1e3)]
    assert [answers.noise(found) for found in noises] == ["yes", "no"]
    memories = [kinds(*({"peak_memory_mb": mb} for mb in (400.0, 410.0, many))) for many in (420.0, 500.0, 1e6)]
    assert [answers.memory(found) for found in memories] == ["yes", "nearly", "no"]
    rates = [kinds(*({"transitions_per_s": rate} for rate in (1.0, some, 50.0))) for some in (8.0, 7.0)]
    assert [answers.speed(found) for found in rates] == ["yes", "in part"]

    def stability(low: float, middle: float, high: float, ways: int = 3) -> str:
        """With environments that are like this, beside so many ways to use one; the other ways are as good as they."""
        one, many = {"low": -60, "iqm": -50, "high": -40}, {"low": low, "iqm": middle, "high": high}
        rows = dict.fromkeys((*answers.ALONE, answers.SOME, answers.MANY), many) | dict.fromkeys(
            answers.ALONE[:ways], one
        )
        return answers.stability({kind: {"equal_transitions": {"mean_return": cell}} for kind, cell in rows.items()})

    assert (stability(-21, -20, -19), stability(-21, -20, -19, ways=2)) == ("yes", "in part")
    assert (stability(-90, -20, -10), stability(-90, -80, -10)) == ("no", "no")


def test_a_pair_shows_an_effect_only_beyond_what_ten_pairs_show_by_chance() -> None:
    clear, close, far = ({"effect": effect, "standard_error": 1.0} for effect in (-3.0, 2.5, 0.1))
    assert answers.clear_pairs([close, clear, far]) == [clear]
    assert answers.closest_pair([far, close]) == close


def test_a_study_that_was_not_run_is_named_and_its_section_left_out(copied: Path) -> None:
    (copied / "study_robustness.json").unlink(missing_ok=True)
    page = render(copied, PAGE)
    first = page.split("## The answers")[0]
    assert "**Not measured yet**" in first
    assert "`robustness`" in first
    assert "## Robustness" not in page
    assert "## Baselines" in page


def test_no_line_of_the_page_is_too_long_but_in_tables_and_code() -> None:
    text = re.sub(r"^```.*?^```$", "", (PAGE).read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    assert [line for line in text.splitlines() if len(line) > 120 and not line.startswith("|")] == []


def test_a_result_without_a_figure_of_the_page_is_refused_in_a_sentence(copied: Path) -> None:
    path = copied / "study_scaling.json"
    found = json.loads(path.read_text("utf-8"))
    del found["figures"]["search"]["2"]["trainings"]
    path.write_text(json.dumps(found), "utf-8")
    with pytest.raises(UserError, match=r"lack something \(.*trainings.*\): run the studies again"):
        write_page(copied, copied / "page.md")


def test_the_time_of_everything_is_known_only_if_every_part_has_one(tmp_path: Path) -> None:
    stored = {step.stored for step in steps()}
    for name in stored:
        (tmp_path / f"{name}.json").write_text('{"figures": {}}', "utf-8")
        rewrite(tmp_path / f"{name}.json", commit="abc", seconds=180.0, machine={"processor": "Some(R) Processor"})
    rows = values.regeneration(Files(tmp_path))
    assert {row.name for row in rows} == {*STUDIES, *STORING}
    assert all((row.commits, row.processors) == (["abc"], ["Some Processor"]) for row in rows)
    assert sum(row.minutes for row in rows) == pytest.approx(3 * len(stored))
    rewrite(tmp_path / "champion_table.json", commit="other")
    (champion,) = (row for row in values.regeneration(Files(tmp_path)) if row.name == "champion")
    assert champion.commits == ["abc", "other"]
    (tmp_path / "champion_table.json").unlink()
    (champion,) = (row for row in values.regeneration(Files(tmp_path)) if row.name == "champion")
    assert champion.minutes == 0


def test_every_stored_result_belongs_to_an_experiment() -> None:
    assert {path.stem for path in RESULTS.glob("*.json")} <= {step.stored for step in steps()}


@pytest.mark.needs("matplotlib")
def test_the_curves_of_the_learners_are_drawn_the_same_twice(tmp_path: Path) -> None:
    def looks(level: float) -> dict[str, Any]:
        return {
            str(n): {"transitions": n, "mean_return": summary([level - n, level]), "seconds": summary([n / 10])}
            for n in (10, 20)
        }

    curves = {red: {name: looks(level) for level, name in enumerate(NAMES)} for red in FOES}
    (tmp_path / "study_learners.json").write_text(json.dumps({"figures": {"curves": curves}}), "utf-8")
    pictures = [write_curves(Files(tmp_path), tmp_path / name).read_text("utf-8") for name in ("a", "b")]
    assert pictures[0] == pictures[1]
    assert all(text in pictures[0] for text in ("stable-baselines3, tuned", "return against Meander", "transitions"))


@pytest.mark.parametrize("number", range(1, 8))
def test_every_answer_says_what_it_does_not_show_and_where_the_tables_are(number: int) -> None:
    text = answer(PAGE.read_text("utf-8"), number)
    assert text.count("*Not shown:*") == 1
    assert "](" in text.split("*Not shown:*")[1]


def test_every_link_within_the_page_leads_to_a_heading() -> None:
    text = PAGE.read_text("utf-8")
    headings = re.findall(r"^#+ (.*)", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert {*re.findall(r"\]\(#([^)]*)\)", text)} <= anchors


def test_giving_up_a_priority_costs_the_best_order_that_has_it_minus_the_best_that_reverses_it() -> None:
    tasks = priorities.by_task([("a,x,b", -1.0), ("x,a,b", -3.0), ("b,a,x", -7.0)], "ab")
    assert tasks == {"a,b": -2.0, "b,a": -7.0}
    assert priorities.reversal(tasks, "a", "b") == 5.0
    assert priorities.reversal(tasks, "b", "a") == -5.0


def test_costs_of_priorities_are_those_that_the_tables_of_incidents_have() -> None:
    files = Files(RESULTS)
    for red, table in values.TABLES.items():
        stored = files.figures(table)["reversed"]
        costs = priorities.incident(files, red)[0].costs
        for pair in stored:
            name = f"{pair['first']} before {pair['second']}"
            assert name not in costs or costs[name] == pytest.approx(pair["cost"])


def test_the_effect_for_a_defender_that_sees_everything_is_exact_estimated_or_unknown() -> None:
    orders = ["enterprise,op_server,user,defender,op_host", "user,op_host,op_server,enterprise,defender"]
    files, exact, none = (
        Files(RESULTS),
        {"exact_effect": 1.5, "orders": orders},
        {"exact_effect": None, "orders": orders},
    )
    assert values.effect_if_all_is_seen(files, "bline 30", exact) == 1.5
    assert values.effect_if_all_is_seen(files, "meander 40", none) is None
    cells = files.figures("study_limit")["meander"]["current"]["orders"]
    first, second = (
        cells[order]["100"]["mean"]
        for order in ("enterprise,op_server,user,op_host", "user,op_host,op_server,enterprise")
    )
    assert values.effect_if_all_is_seen(files, "meander 0", none) == first - second
    assert values.compared_orders({"bline 0": none, "meander 0": none}) == {tuple(orders): ["B_line, 0", "Meander, 0"]}


def test_an_effect_that_better_defenders_do_not_have_is_said_to_shrink() -> None:
    assert [answers.trend([4.0, last]) for last in (1.0, 4.1, 6.0)] == ["shrinks", "stays about the same", "grows"]


def test_a_strategy_is_better_only_beyond_the_noise_of_three_searches() -> None:
    found = [answers.compared(difference, 1.0) for difference in (2.7, 2.9, -2.9)]
    assert found == ["within the noise", "better", "worse"]


def test_whether_gp_ucb_is_worth_it_follows_from_both_kinds_of_problems() -> None:
    def table(informed: float, random: float, after_twenty: float = 0.1) -> dict[str, Any]:
        regrets = {"gp-ucb": (informed, 0.0), "random": (random, after_twenty)}
        return {
            name: {"mean_regret": {"10": ten, "20": twenty}, "interval": {"10": 0.2, "20": 0.2}}
            for name, (ten, twenty) in regrets.items()
        }

    clear, close = table(0.1, 1.0), table(0.9, 1.0)
    noise, better = "within the noise", "better"
    assert answers.worthwhile([noise, noise], [clear]).startswith(
        "In incidents with five unit types, yes after ten evaluations, not clearly after the default twenty (simulated)"
    )
    assert "types, yes (simulated);" in answers.worthwhile([noise], [table(0.1, 1.0, after_twenty=0.5)])
    assert "types, no gain was found;" in answers.worthwhile([noise, noise], [clear, close])
    ends = [answers.worthwhile(found, [clear]) for found in ([noise] * 2, [better, noise], [better] * 2)]
    assert [end.split("orders, ")[1] for end in ends] == [
        "no gain was found",
        "yes in some places",
        "yes in most places",
    ]


def test_more_environments_converge_faster_only_if_they_are_ahead_in_equal_time_and_follow_sooner() -> None:
    def rows(low: float, high: float, seconds: float) -> dict[str, Any]:
        many = {"equal_seconds": {"mean_return": {"low": low, "high": high}}, "followed": {"seconds": {"iqm": seconds}}}
        some = {"equal_seconds": {"mean_return": {"low": -20, "high": -18}}, "followed": {"seconds": {"iqm": 2.0}}}
        return {answers.SOME: some, answers.MANY: many}

    given = [(-17, -16, 1.0), (-17, -16, 3.0), (-19, -16, 1.0), (-30, -25, 1.0)]
    assert [answers.convergence(rows(*one)) for one in given] == ["yes", "not shown", "not shown", "no"]


def test_the_words_about_problems_outside_follow_from_paired_differences() -> None:
    def others(**gaps: tuple[float, float]) -> dict[str, Any]:
        cells = {
            name: {
                budget: {"gp_ucb_minus_this": gap, "difference_error": 0.1}
                for budget, gap in zip(("50", "100"), pair, strict=True)
            }
            for name, pair in gaps.items()
        }
        return cells | {"gp_ucb": {"100": {}, "50": {}}}

    steady = others(random=(-0.5, -0.5), local_search=(0.1, 0.1), annealing=(0.5, 0.5))
    assert answers.outside(steady) == (
        "better than random search and indistinguishable from local search and worse than annealing "
        "after 50 and 100 evaluations"
    )
    assert answers.always(steady) == "better than random search and worse than annealing"
    fading = others(random=(-0.5, 0.1), local_search=(0.1, 0.1), annealing=(0.1, 0.1))
    assert answers.outside(fading) == (
        "better than random search and indistinguishable from local search and annealing after 50 evaluations; "
        "indistinguishable from random search, local search and annealing after 100 evaluations"
    )
    assert answers.always(fading) == "neither better nor worse than any other"


def test_our_ppo_is_behind_only_where_the_other_interval_is_better_as_a_whole() -> None:
    def curve(*intervals: tuple[float, float]) -> dict[str, Any]:
        cells = ({"mean_return": {"low": low, "high": high}} for low, high in intervals)
        return dict(zip(("20000", "100000", "300000"), cells, strict=True))

    curves = {"ours-tuned": curve((-9, -8), (-6, -5), (-4, -3)), "sb3-tuned": curve((-8, -6), (-4, -3), (-9, -2))}
    assert answers.behind(curves) == 100_000
    assert answers.behind({"ours-tuned": curves["sb3-tuned"], "sb3-tuned": curves["ours-tuned"]}) == 0


def test_the_gap_between_orders_is_alike_only_if_no_kind_of_defender_differs_much() -> None:
    said = [answers.alike(kinds) for kinds in ([[30.0, 32.0, 31.0], [80.0, 75.0]], [[30.0, 20.0, 30.0], [80.0, 75.0]])]
    assert said == ["is about the same for every kind of defender", "depends on the kind of defender"]


def test_trials_with_the_same_settings_are_compared_one_by_one() -> None:
    def trials(*returns: float, anneal: bool) -> dict[str, Any]:
        return {"returns": returns, "values": {"anneal": anneal}}

    found = {"ours": trials(-1.0, -5.0, -3.0, anneal=True), "sb3": trials(-2.0, -4.0, -9.0, anneal=False)}
    assert answers.more_often(found) == 2
    assert [answers.annealed({"a": found, "b": found}, name) for name in found] == [2, 0]


def test_a_good_order_that_costs_a_point_is_not_said_to_cost_little() -> None:
    def foes(difference: float) -> dict[str, Any]:
        return {"bline": {"obedience": {"difference": difference}}, "meander": {"obedience": {"difference": 0.1}}}

    assert (answers.price(foes(-0.3)), answers.price(foes(-2.0))) == ("Little", "Up to 2.0 points even")


def test_a_priority_is_listed_if_more_than_half_of_the_searches_name_it() -> None:
    def search(*effects: float) -> dict[str, Any]:
        pairs = [{"first": "a", "second": "b", "effect": effect, "matters": effect > 1} for effect in effects]
        return {"pair_weights": pairs}

    assert priorities.named_pairs([search(2.0), search(0.5)]) == []
    assert priorities.named_pairs([search(2.0), search(3.0), search()]) == [priorities.Named("a before b", 2, 2.0, 3.0)]


def test_the_answer_about_priorities_changes_with_the_figures(
    changed: Change,
) -> None:
    weakest = priorities.standard_game(Files(RESULTS))[0].costs["enterprise before user"]

    def worth(cost: float) -> str:
        def edit(figures: dict[str, Any]) -> None:
            for order, cells in figures["bline"]["current"]["orders"].items():
                cells["100"]["exact"] = -11.0 - cost * (order.index("user") < order.index("enterprise"))

        return one_line(answer(changed("study_limit", edit), 2))

    assert "is worth shrinks the more a defender knows" in worth(weakest / 5)
    assert "is worth stays about the same the more a defender knows" in worth(weakest)


def test_takeovers_after_which_the_champion_loses_clearly_are_named_by_opponent() -> None:
    def row(*champion: float) -> dict[str, Any]:
        return {"incidents": [-20.0, -30.0, -40.0], "champion": [*champion]}

    found = {"takeovers": [0, 10, 20], "bline": row(-29.0, -60.0, -43.0), "meander": row(-20.0, -30.5, -10.0)}
    assert values.weak_takeovers(found) == {"B_line": [(10, -60.0, -30.0), (20, -43.0, -40.0)]}
    assert [one.points for one in values.weak_takeovers(found)["B_line"]] == [30.0, 3.0]


def test_champions_that_do_not_come_again_are_not_counted_as_the_same(
    changed: Change,
) -> None:
    def edit(figures: dict[str, Any]) -> None:
        figures["same_weights"] = False

    number = len(EXPERIMENTS["repeat"].parts)
    assert values.repeated(Files(RESULTS)) == (number, number)
    assert f"weights: {number - 1} of {number} are the same" in one_line(changed("repeat_obedient_current", edit))
