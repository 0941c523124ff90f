//! Names of an earlier version: scenarios that use them are read, with a warning. They go with the
//! next version.

/// Keys: the table (a `*` matches one part of its name), the key, its old name.
const KEYS: [(&str, &str, &str); 6] = [
    ("body.disturbances", "delay_samples", "late"),
    ("body.disturbances", "outlier_fraction", "leaps"),
    ("loop.guard.*", "outlier_threshold", "leap"),
    ("brain", "extra_devices", "beside"),
    ("brain", "idle_update", "silence"),
    ("brain.twin.online", "replay_capacity", "kept"),
];

/// Values: the key, the value, its old name.
const VALUES: [(&str, &str, &str); 2] = [
    ("idle_update", "catch_up", "counts"),
    ("idle_update", "freeze", "skips"),
];

/// What was renamed, for the reference: the place, the old name and the present one.
pub(crate) fn renamings() -> impl Iterator<Item = (String, &'static str, &'static str)> {
    let keys = KEYS.iter().map(|(table, new, old)| {
        (
            format!("key in `[{}]`", table.replace('*', "CHANNEL")),
            *old,
            *new,
        )
    });
    keys.chain(
        VALUES
            .iter()
            .map(|(key, new, old)| (format!("value of `{key}`"), *old, *new)),
    )
}

/// The old name of a key of a table.
pub(super) fn old_key(table: &str, key: &str) -> Option<&'static str> {
    KEYS.iter()
        .find(|(pattern, new, _)| *new == key && matches(pattern, table))
        .map(|(.., old)| *old)
}

/// The value that an old value of a key is called now.
pub(super) fn new_value(key: &str, value: &str) -> Option<&'static str> {
    VALUES
        .iter()
        .find(|(of, _, old)| *of == key && *old == value)
        .map(|(_, new, _)| *new)
}

fn matches(pattern: &str, table: &str) -> bool {
    let (mut parts, mut names) = (pattern.split('.'), table.split('.'));
    loop {
        match (parts.next(), names.next()) {
            (None, None) => return true,
            (Some(part), Some(name)) if part == "*" || part == name => {}
            _ => return false,
        }
    }
}
