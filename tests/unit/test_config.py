"""Settings are read once, trimmed, checked, and a wrong one is reported in one line."""

import contextlib
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harvester.kernel.config import KEY_VARIABLE, PREFIX, Config, parse_database_url
from harvester.kernel.errors import ConfigError

KEY = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
URL = "postgresql://shop:s3cret-word@db.example:5433/prices"
SETTINGS = {field.metadata["variable"]: field for field in fields(Config)}


def read(**env: str) -> Config:
    return Config.from_env(env)


def problem(**env: str) -> str:
    with pytest.raises(ConfigError) as refused:
        read(**env)
    said = str(refused.value)
    assert "\n" not in said
    return said


def test_nothing_set_means_the_embedded_database_and_the_defaults():
    config = read(HOME="/home/ada")
    assert config.embedded
    assert config.home == Path("/home/ada/.local/share/harvester")
    assert (config.worker_threads, config.heartbeat_seconds, config.stuck_seconds) == (8, 20.0, 300.0)


@pytest.mark.parametrize(
    ("env", "is_root", "home"),
    [
        ({"HOME": "/root"}, True, "/var/lib/harvester"),
        ({"HOME": "/home/ada", "XDG_DATA_HOME": "/data/ada"}, False, "/data/ada/harvester"),
        ({"HARVESTER_HOME": "/srv/h", "HOME": "/root"}, True, "/srv/h"),
    ],
)
def test_the_home_directory(env, is_root, home):
    assert Config.from_env(env, is_root=is_root).home == Path(home)


def test_values_are_trimmed():
    config = read(HARVESTER_WORKER_THREADS="  12\n", HARVESTER_LOG_LEVEL=" DEBUG ", WORKER_ID="\tw1 ")
    assert (config.worker_threads, config.log_level, config.worker_id) == (12, "debug", "w1")


def test_an_empty_value_is_no_value():
    assert read(HARVESTER_WORKER_THREADS="  ").worker_threads == 8
    assert read(HARVESTER_DATABASE_URL=" ").embedded


@pytest.mark.parametrize("text", ["1", "true", "YES", "On"])
def test_words_for_yes(text):
    assert read(HARVESTER_DEBUG=text).debug is True


@pytest.mark.parametrize("text", ["0", "false", "NO", "off"])
def test_words_for_no(text):
    assert read(HARVESTER_DEBUG=text).debug is False


def test_a_list_is_separated_by_commas():
    assert read(HARVESTER_ALLOWED_HOSTS=" a.example , b.example,, ").allowed_hosts == ("a.example", "b.example")


@pytest.mark.parametrize(
    ("variable", "text"),
    [
        ("HARVESTER_WORKER_THREADS", "many"),
        ("HARVESTER_WORKER_THREADS", "0"),
        ("HARVESTER_WORKER_THREADS", "513"),
        ("HARVESTER_WORKER_THREADS", "2.5"),
        ("HARVESTER_POLL_SECONDS", "nan"),
        ("HARVESTER_POLL_SECONDS", "inf"),
        ("HARVESTER_POLL_SECONDS", "-1"),
        ("HARVESTER_GRACE_SECONDS", "1e9"),
        ("HARVESTER_DEBUG", "maybe"),
        ("HARVESTER_LOG_LEVEL", "loud"),
        ("HARVESTER_LISTEN", "localhost"),
        ("HARVESTER_LISTEN", "127.0.0.1:99999"),
        ("HARVESTER_LISTEN", ":8000x"),
        ("HARVESTER_REDIS_URL", "http://redis.example"),
        ("HARVESTER_DATABASE_URL", "mysql://db.example/x"),
    ],
)
def test_a_wrong_value_is_named_with_its_variable(variable, text):
    assert variable in problem(**{variable: text})


def test_a_misspelt_setting_is_refused_and_the_right_name_offered():
    assert "HARVESTER_DATABASE_URL" in problem(HARVESTER_DATABSE_URL=URL)
    assert "HARVESTER_ZEBRA" in problem(HARVESTER_ZEBRA="1")


def test_variables_of_others_are_ignored():
    assert read(HARVEST="1", PATH="/bin", HARVESTERS_UNION="yes").embedded


def test_an_external_database_needs_a_key():
    said = problem(HARVESTER_DATABASE_URL=URL)
    assert KEY_VARIABLE in said
    assert "s3cret-word" not in said
    assert not read(HARVESTER_DATABASE_URL=URL, **{KEY_VARIABLE: KEY}).embedded


def test_the_owners_url_alone_makes_no_sense():
    assert "HARVESTER_OWNER_DATABASE_URL" in problem(HARVESTER_OWNER_DATABASE_URL=URL)


@pytest.mark.parametrize(("heartbeat", "stuck"), [("20", "40"), ("150", "300"), ("0.1", "0.2")])
def test_living_jobs_must_not_look_stuck(heartbeat, stuck):
    assert "STUCK" in problem(HARVESTER_HEARTBEAT_SECONDS=heartbeat, HARVESTER_STUCK_SECONDS=stuck)


@pytest.mark.parametrize(
    ("listen", "address"),
    [("127.0.0.1:8000", ("127.0.0.1", 8000)), ("[::1]:80", ("[::1]", 80)), ("0.0.0.0:0", ("0.0.0.0", 0))],
)
def test_where_the_portal_listens(listen, address):
    assert read(HARVESTER_LISTEN=listen).listen_address == address


# -- database URLs -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        (URL, {"dbname": "prices", "user": "shop", "password": "s3cret-word", "host": "db.example", "port": 5433}),
        ("postgres://db.example/x", {"dbname": "x", "host": "db.example"}),
        ("postgresql://u:p%40ss%2Fword@h/d%20b", {"dbname": "d b", "user": "u", "password": "p@ss/word", "host": "h"}),
        ("postgresql:///x?host=/run/postgresql", {"dbname": "x", "host": "/run/postgresql"}),
        ("postgresql://h/x?sslmode=require", {"dbname": "x", "host": "h", "sslmode": "require"}),
        ("postgresql://[::1]:5432/x", {"dbname": "x", "host": "::1", "port": 5432}),
    ],
)
def test_a_database_url_becomes_connection_parameters(url, expected):
    assert parse_database_url(url) == expected


@pytest.mark.parametrize(
    "url",
    [
        "s3cret-word",
        "mysql://u:s3cret-word@h/x",
        "postgresql://u:s3cret-word@h",
        "postgresql://u:s3cret-word@h/",
        "postgresql://u:s3cret-word@h:port/x",
        "postgresql://u:s3cret-word@h:99999/x",
        "postgresql://u:s3cret-word@[::1/x",
        "postgresql://u:s3cret-word@/x",
        "postgresql://u:s3cret-word#x@h/x",
    ],
)
def test_a_malformed_database_url_is_reported_without_its_password(url):
    with pytest.raises(ConfigError) as refused:
        parse_database_url(url, "THE_VARIABLE")
    assert "THE_VARIABLE" in str(refused.value)
    assert "s3cret-word" not in str(refused.value)


@given(st.text(max_size=80))
def test_no_text_breaks_the_reading_of_a_database_url(text):
    for url in (text, f"postgresql://{text}", f"postgresql://u:p@h/{text}"):
        try:
            parameters = parse_database_url(url)
        except ConfigError:
            continue
        assert parameters["dbname"]
        assert parameters["host"]


# -- the table itself --------------------------------------------------------------------------------------------


def test_every_setting_has_a_variable_a_meaning_and_possible_limits():
    for variable, field in SETTINGS.items():
        assert variable.startswith(PREFIX) or variable in (KEY_VARIABLE, "WORKER_ID", "AFFILIATE_FEED_ALLOW_PLAIN_FTP")
        assert field.metadata["help"]
        if isinstance(field.default, int | float) and not isinstance(field.default, bool):
            assert field.metadata["low"] <= field.default <= field.metadata["high"]


@given(st.sampled_from(sorted(SETTINGS)), st.text(max_size=30))
def test_no_text_breaks_the_reading_of_a_setting(variable, text):
    with contextlib.suppress(ConfigError):
        Config.from_env({variable: text})


@pytest.mark.parametrize(
    "url", ["http://hooks.slack.com/services/s3cret-word", "s3cret-word", "https://ann:s3cret-word@host/x", "https://x"]
)
def test_a_webhook_that_cannot_be_one_is_refused_without_being_shown(url):
    said = problem(HARVESTER_SLACK_WEBHOOK_URL=url)
    assert "HARVESTER_SLACK_WEBHOOK_URL must look like https://" in said
    assert "s3cret-word" not in said
    assert read(HARVESTER_SLACK_WEBHOOK_URL="https://hooks.slack.com/services/T/B/X").slack_webhook_url.endswith("/X")


def test_what_is_kept_is_kept_as_long_as_the_rules_say():
    config = Config.from_env({})
    kept = (config.keep_runs_days, config.keep_alerts_days, config.keep_succeeded_days, config.keep_failed_days)
    assert kept == (30, 90, 7, 30)
