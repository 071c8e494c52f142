"""Options as vLLM prints them."""

from kvguard.lines.option_text import dictionary, pairs


def test_a_namespace_gives_its_known_options():
    text = "host=None, model='acme/Quill', max_model_len=32768, gpu_memory_utilization=0.9, served_model_name=['quill']"

    assert dict(pairs(text)) == {
        "model": "acme/Quill",
        "max_model_len": 32768,
        "gpu_memory_utilization": 0.9,
        "served_model_name": ["quill"],
    }


def test_secrets_are_never_kept():
    assert dict(pairs("api_key='sk-1234567890', hf_token='hf_123', model='m', ssl_keyfile=None")) == {"model": "m"}
    assert dict(dictionary("{'api_key': ['sk-1234567890'], 'model': 'm'}")) == {"model": "m"}


def test_values_may_hold_commas_brackets_and_quotes():
    text = "model='a, dtype=fake (1)', quantization=None, dtype=torch.bfloat16, tensor_parallel_size=2)"

    assert dict(pairs(text)) == {"model": "a, dtype=fake (1)", "dtype": "torch.bfloat16", "tensor_parallel_size": 2}


def test_pairs_inside_another_configuration_are_not_the_engines():
    text = (
        "speculative_config=SpeculativeConfig(method='mtp', model='acme/draft', dtype=torch.float16), "
        "model='acme/target', compilation_config={'block_size': 1, 'x': [dtype=y]}, dtype=torch.bfloat16, seed=0"
    )

    assert dict(pairs(text)) == {"model": "acme/target", "dtype": "torch.bfloat16"}


def test_a_lost_comma_between_two_pairs_loses_neither():
    assert dict(pairs("chunked_prefill_enabled=False use_async_output_proc=True, enforce_eager=True, x=1")) == {
        "chunked_prefill_enabled": False,
        "enforce_eager": True,
    }


def test_half_a_word_at_the_end_of_a_cut_line_is_no_value():
    assert dict(pairs("tensor_parallel_size=2, max_seq_len=131")) == {"tensor_parallel_size": 2}


def test_a_dict_with_objects_inside_is_read_item_by_item():
    text = "{'model': 'm', 'compilation_config': CompilationConfig(level=3), 'max_model_len': 4096, 'headless': True}"

    assert dict(dictionary(text)) == {"model": "m", "max_model_len": 4096, "headless": True}


def test_items_inside_another_configuration_are_not_the_servers():
    text = (
        "{'model': 'acme/target', 'attention_config': AttentionConfig(backend=None), "
        "'speculative_config': {'model': 'acme/draft', 'max_model_len': 512}, 'dtype': 'half', 'max_num_seqs': 12"
    )

    assert dict(dictionary(text)) == {"model": "acme/target", "dtype": "half"}


def test_numbers_that_no_option_has_are_left_out():
    assert dict(pairs(f"max_model_len={'9' * 40}, gpu_memory_utilization=1e999, block_size=16, x=1")) == {
        "block_size": 16
    }


def test_text_that_is_no_dict_gives_nothing():
    assert dict(dictionary("{")) == {}
    assert dict(dictionary("{1, 2}")) == {}
    assert dict(dictionary("'\\d' + {")) == {}


def test_a_page_that_wraps_a_dictionary_may_take_the_blank_before_a_value():
    """`'num_gpu_blocks_override':` at the end of a line, `100}` on the next."""
    text = "{'model': 'm', 'load_format':'dummy', 'num_gpu_blocks_override':  100}"

    assert dict(dictionary(text)) == {"model": "m", "load_format": "dummy", "num_gpu_blocks_override": 100}


def test_a_path_that_is_an_object_names_the_model():
    text = "model=PosixPath('/runs/a/merged'), tokenizer=PosixPath('/runs/b'), max_seq_len=32768, seed=0)"

    assert dict(pairs(text)) == {"model": "/runs/a/merged", "max_seq_len": 32768}
    assert dict(dictionary("{'model': PosixPath('/runs/a')}")) == {"model": "/runs/a"}


def test_a_drafters_tokens_are_an_option_of_the_server() -> None:
    config = "speculative_config=SpeculativeConfig(method='mtp', num_spec_tokens=3), dtype=torch.bfloat16, seed=0"
    arguments = (
        "{'model': 'm', 'speculative_config': {'method': 'ngram', 'num_speculative_tokens': 5}, 'enable_lora': True}"
    )
    namespace = """speculative_config='{"num_speculative_tokens": 4}', max_loras=2, enable_lora=True, model='m', x=1"""

    assert dict(pairs(config)) == {"num_speculative_tokens": 3, "dtype": "torch.bfloat16"}
    assert dict(dictionary(arguments)) == {"model": "m", "num_speculative_tokens": 5, "enable_lora": True}
    assert dict(pairs(namespace)) == {"num_speculative_tokens": 4, "max_loras": 2, "enable_lora": True, "model": "m"}
    assert "num_speculative_tokens" not in pairs("speculative_config=None, kv={'num_speculative_tokens': 9}, seed=0)")


def test_what_adapters_may_take_is_nothing_where_there_are_none():
    assert dict(pairs("enable_lora=False, max_loras=1, max_lora_rank=16, model='m')")) == {
        "enable_lora": False,
        "model": "m",
    }
    assert dict(dictionary("{'enable_lora': True, 'max_loras': 4}")) == {"enable_lora": True, "max_loras": 4}
