"""The whole interface, tried with what its own description allows and forbids."""

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    negative_data_rejection,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

# Whether all that the description allows is accepted is not among them: an image that is sent as
# text must be an image, and a question that is answered must have been asked.
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
]
EXAMPLES = 40
# Too many inputs are refused as too large, which is one more way to refuse what is wrong.
RULES = {
    "checks": {"negative_data_rejection": {"expected-statuses": [400, 404, 405, 413, 415, 422]}}
}
ANY_TEXT = "POST /v1/import/answers"  # a file that makes no sense is reported line by line


class Fuzz:
    """Sends what schemathesis makes up to a service, and remembers what came back."""

    def __init__(self, live, mode):
        token = live.storage.tokens.create("fuzz", "admin")
        live.forget_what_was_seen()
        self.headers = {"Authorization": f"Bearer {token}"}
        self.mode = mode
        self.schema = schemathesis.openapi.from_asgi(
            "/openapi.json", live.client.app, config=schemathesis.Config.from_dict(RULES)
        )
        self.samples = list(live.samples)
        self.seen = {}

    def try_all(self):
        for result in self.schema.get_all_operations():
            operation = result.ok()
            told = operation.definition.raw
            given = bool(told.get("parameters") or told.get("requestBody"))
            if self.mode is GenerationMode.POSITIVE or (given and operation.label != ANY_TEXT):
                self.try_one(operation, EXAMPLES if given else 1)

    def try_one(self, operation, examples=EXAMPLES):
        answered = self.seen.setdefault(operation.label, set())
        names = {one.name for one in operation.path_parameters}
        fixed = {
            name: self.samples.pop() if name == "sample" else 1 - (name == "number")
            for name in names
        }
        # What exists is tried too: numbers made up at random never meet it.
        for path in [{}, fixed] if names and self.mode is GenerationMode.POSITIVE else [{}]:
            strategy = operation.as_strategy(
                generation_mode=self.mode, **({"path_parameters": path} if path else {})
            )
            self.send(strategy, answered, examples)

    def send(self, strategy, answered, examples):
        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=strategy)
        def one(case):
            response = case.call_and_validate(checks=CHECKS, headers=self.headers)
            answered.add(response.status_code)

        one()


@pytest.mark.slow
def test_what_the_description_allows_is_answered_as_it_says(start):
    live = start(server={"requests_per_minute": 1_000_000})
    live.ask(6)
    fuzz = Fuzz(live, GenerationMode.POSITIVE)

    fuzz.try_all()

    reached = {label for label, codes in fuzz.seen.items() if codes & {200, 204}}
    # Made-up bytes are no images, and nothing made up was answered that could be undone.
    assert set(fuzz.seen) - reached <= {
        "POST /v1/predict",
        "POST /v1/questions/undo",
        "GET /v1/guide/{label}/{place}",  # there are no examples
        "GET /v1/versions/{number}/weights",  # there are no weights
        "GET /v1/versions/{number}/against/{other}",  # there is no audit
    }
    assert len(reached) > 15
    assert not any(codes & {401, 403} for codes in fuzz.seen.values())


@pytest.mark.slow
def test_what_the_description_forbids_is_refused_as_it_says(start):
    live = start(server={"requests_per_minute": 1_000_000})
    live.ask(6)
    fuzz = Fuzz(live, GenerationMode.NEGATIVE)

    fuzz.try_all()

    assert any(422 in codes for codes in fuzz.seen.values())


@pytest.mark.parametrize(("mode", "code"), [("positive", 200), ("negative", 422)])
def test_an_array_service_keeps_to_its_description(start, array_model, mode, code):
    live = start(input={"kind": "array", "shape": (4,)}, model=array_model)
    fuzz = Fuzz(live, GenerationMode(mode))

    fuzz.try_one(fuzz.schema["/v1/predict"]["POST"])

    assert code in fuzz.seen["POST /v1/predict"]
