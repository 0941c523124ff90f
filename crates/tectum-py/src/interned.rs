//! Texts from Python that the libraries keep for as long as the process runs.

use std::collections::HashSet;
use std::sync::{LazyLock, Mutex};

use crate::mutex::locked;

/// The one copy of a text; it is never freed.
pub fn interned(text: String) -> &'static str {
    static TEXTS: LazyLock<Mutex<HashSet<&'static str>>> = LazyLock::new(Mutex::default);
    let mut texts = locked(&TEXTS);
    match texts.get(text.as_str()) {
        Some(known) => known,
        None => {
            let text: &'static str = Box::leak(text.into_boxed_str());
            texts.insert(text);
            text
        }
    }
}
