//! Base64, as ids and tokens have it in JSON.

use std::iter;

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The text of bytes, padded with `=`.
pub(super) fn encode(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let byte = |place: usize| u32::from(part.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let digits = [18, 12, 6, 0].map(|shift| ALPHABET[(bits >> shift) as usize & 63]);
        text.extend(digits[..part.len() + 1].iter().copied().map(char::from));
        text.extend(iter::repeat_n('=', 3 - part.len()));
    }
    text
}

/// The bytes of a text; none unless it is the one text of its bytes.
pub(super) fn decode(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for part in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = part.iter().try_fold(0u32, |bits, digit| {
            let value = ALPHABET.iter().position(|letter| letter == digit)?;
            Some(bits << 6 | value as u32)
        })?;
        let whole = bits << (6 * (4 - part.len()));
        bytes.extend(&whole.to_be_bytes()[1..part.len().max(1)]);
    }
    (encode(&bytes) == text).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_bytes_are_each_others_only_form() {
        for (bytes, text) in [
            (&b""[..], ""),
            (b"f", "Zg=="),
            (b"fo", "Zm8="),
            (b"foo", "Zm9v"),
            (b"foobar", "Zm9vYmFy"),
            (b"\xff\xfe\xfd\x00", "//79AA=="),
        ] {
            assert_eq!(encode(bytes), text);
            assert_eq!(decode(text).as_deref(), Some(bytes));
        }
        for wrong in [
            "Zg", "Zg=", "Zh==", "Z===", "Zm9v=", "Zm9", "=", "Zm 9", "Zm9v\n",
        ] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
