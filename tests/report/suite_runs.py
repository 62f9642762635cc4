"""Runs of a small suite on PACS, as their files would be read back."""

from __future__ import annotations

from attakit.report import RunRecord

DOMAINS = ("art_painting", "cartoon", "sketch")
SPLITS = ("1", "2", "3", "4")
STEPS_EACH = 4
SIZE = 100


def suite_run(
    label,
    *,
    order="domain_after_domain",
    budget=300,
    seed=0,
    base=60.0,
    labels=0,
    batch_size=SIZE,
    model="0123456789abcdef",
    data_set="pacs",
    domains=DOMAINS,
    finished=True,
    after_each=False,
    **end,
):
    """A run whose accuracy in segment number n is `base + n`, and whose labels come evenly."""
    segments = domains if order == "domain_after_domain" else SPLITS
    steps = []
    total = STEPS_EACH * len(segments)
    for step in range(total):
        number = step // STEPS_EACH
        steps.append(
            {
                "kind": "step",
                "step": step,
                "size": SIZE,
                "seconds": 0.5 + 0.25 * number,
                "received": labels * (step + 1) // total,
                "stream_accuracy": base + number / 2,
                "segments": {segments[number]: [int(base + number), SIZE]},
            }
        )
        if step % STEPS_EACH == STEPS_EACH - 1 and after_each:
            steps[-1]["source_accuracy"] = 98.0 - number
            steps[-1]["source_accuracy_whole"] = 99.0 - number
            steps[-1]["domains"] = {name: base + number + 0.5 for name in domains}
    line = {
        "kind": "end",
        "stream_accuracy": base + 1,
        "segments": {name: base + number for number, name in enumerate(segments)},
        "labels": labels,
        "seconds": sum(step["seconds"] for step in steps),
        "source_accuracy": 97.0,
        "post_adaptation": {name: base + 10 + n for n, name in enumerate(domains)},
        **end,
    }
    experiment = {
        "seed": seed,
        "stream": {"name": data_set, "order": order, "batch_size": batch_size},
        "method": {"name": label.split()[0].lower(), "label": label},
        "labels": {"budget": budget},
    }
    before = {"source_accuracy": 99.5, "domains": dict.fromkeys(domains, 50.0)}
    return RunRecord(
        experiment,
        {"model": model},
        list(segments),
        [],
        steps,
        line if finished else None,
        before if after_each else {"source_accuracy": 99.5},
    )


def comparison_runs(seeds=(0, 1)):
    """Tent, which asks nothing, and SimATTA with two budgets, on both streams."""
    runs = []
    for order in ("domain_after_domain", "random"):
        for seed in seeds:
            for budget in (300, 500):
                runs += [
                    suite_run("SimATTA", order=order, budget=budget, seed=seed,
                              base=70.0 + seed + budget / 100, labels=budget - 50,
                              source_accuracy_whole=98.5,
                              post_adaptation_unlabelled=dict.fromkeys(DOMAINS, 77.0)),
                    suite_run("Tent (steps=1)", order=order, budget=budget, seed=seed,
                              base=60.0 + seed, batch_size=16, source_accuracy_whole=97.5),
                ]
    return runs
