from __future__ import annotations

import pytest
from pydantic import ValidationError

from shared.messages.signatures import is_signed, new_key, public_key, sign
from shared.runtime.settings import Settings

KEY = new_key()


def test_only_the_owner_of_the_key_can_sign_and_only_what_was_signed_is() -> None:
    signature = sign(KEY, "a manifest")
    assert is_signed(public_key(KEY), "a manifest", signature)
    assert not is_signed(public_key(KEY), "another manifest", signature)
    assert not is_signed(public_key(new_key()), "a manifest", signature)


@pytest.mark.parametrize("signature", ["", "00", "no hex", "00" * 64])
def test_what_is_no_signature_is_none(signature: str) -> None:
    assert not is_signed(public_key(KEY), "a manifest", signature)


@pytest.mark.parametrize("key", ["short", "Z" * 64, "0" * 63])
def test_a_setting_that_is_no_key_is_refused_and_not_shown(key: str) -> None:
    with pytest.raises(ValidationError, match="64 hexadecimal digits"):
        Settings(model_public_key=key)
    with pytest.raises(ValidationError) as error:
        Settings(model_key=key)
    assert key not in str(error.value)
