"""A config that is not what it claims is refused in one line, whatever stands where."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kvguard.errors import ConfigError
from kvguard.kvcache.architectures import read_model
from kvguard.kvcache.layout import lay_out
from kvguard.kvcache.model_config import model_config, parse_model_config
from kvguard.kvcache.models import MODELS, named_config
from kvguard.kvcache.options import Options, resolve

WRONG = st.sampled_from(
    [None, "x", [], [1], {}, {"a": 1}, -1, 0, 0.5, 1e12, True, float("inf"), ["full_attention"], [{}]]
)


@pytest.mark.parametrize("text", ["", "[]", "3", "{", '"config"'])
def test_what_is_no_object_is_no_config(text: str) -> None:
    with pytest.raises(ConfigError, match="not a model config"):
        parse_model_config(text, "config.json")


@pytest.mark.parametrize(
    "keys, told",
    [
        ({"architectures": []}, 'no "architectures"'),
        ({"num_hidden_layers": None}, 'no "num_hidden_layers"'),
        ({"num_hidden_layers": 2.5}, '"num_hidden_layers" of the model config is 2.5'),
        ({"num_attention_heads": 0}, "not a whole number from 1 on"),
        ({"num_hidden_layers": 100_000}, "more than any model has"),
        ({"head_dim": None, "hidden_size": 1000, "num_attention_heads": 3}, 'no whole "head_dim"'),
        ({"layer_types": ["full_attention"]}, "lists 1 of 32 layers"),
    ],
)
def test_the_key_that_is_wrong_is_named(keys: dict[str, Any], told: str) -> None:
    known = named_config("llama-3.1-8b")
    assert known is not None
    with pytest.raises(ConfigError) as refused:
        read_model(model_config({**known.whole, **keys}), Options())

    assert told in str(refused.value)


@settings(max_examples=150, deadline=None)
@given(name=st.sampled_from(sorted(MODELS)), data=st.data(), value=WRONG)
def test_no_value_of_any_key_breaks_it(name: str, data: st.DataObject, value: object) -> None:
    known = named_config(name)
    assert known is not None
    document = json.loads(json.dumps(known.whole))
    document[data.draw(st.sampled_from(sorted(document)))] = value
    options, told = Options(), ""
    try:
        model = read_model(model_config(document), options)
        lay_out(model, resolve(options, model)[0])
    except ConfigError as error:
        told = str(error)
    assert "\n" not in told
