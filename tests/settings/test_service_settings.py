"""What a service file may say."""

import pytest

from attakit.errors import SettingError
from attakit.settings.load import parse_service


@pytest.mark.parametrize("classes", [["a"], ["a", "b", "a"], ["a", " "], []])
def test_classes_have_names_of_their_own(classes):
    with pytest.raises(SettingError, match="classes must be a list of at least two names, all"):
        parse_service({"classes": classes})


@pytest.mark.parametrize("other", ["cat ", "\tcat", "cat\u00a0"])
def test_classes_differ_in_more_than_spaces_around_them(other):
    with pytest.raises(SettingError, match=r"classes must be names that .* 'cat' from"):
        parse_service({"classes": ["cat", "dog", other]})


def test_classes_differ_in_more_than_the_form_of_their_accents():
    with pytest.raises(SettingError, match="classes must be names that differ in more than"):
        parse_service({"classes": ["é", "e\u0301"]})


@pytest.mark.parametrize(
    "address",
    ["ftp://a", "localhost:80", "file:///a", "", "http://", "http://a:b/", "http://[::1/"],
)
def test_a_webhook_has_a_web_address(address):
    with pytest.raises(SettingError, match=r"labels\.webhook must be an http or https address"):
        parse_service({"classes": ["a", "b"], "labels": {"webhook": address}})


@pytest.mark.parametrize("gate", [{"audit_window": 10, "audit_needed": 11}, {"audit_window": 7}])
def test_no_more_audit_answers_are_needed_than_count(gate):
    with pytest.raises(
        SettingError, match=r"gate\.audit_needed must be at most audit_window, which is"
    ):
        parse_service({"classes": ["a", "b"], "gate": gate})
