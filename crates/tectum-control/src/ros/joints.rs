//! Joints: elements of an array whose places are those of names next to it.

use super::{Decoder, Definition, Element, Fields, Number};

/// The time in the header of a message: seconds and nanoseconds.
pub const STAMP: [&str; 2] = ["header.stamp.sec", "header.stamp.nanosec"];

/// Arrays of the names of joints, in the message of a field or in one around it.
pub(crate) const NAMES: [&str; 2] = ["name", "joint_names"];

/// The paths of arrays of names that may belong to a field: in its own message, then around it.
pub(crate) fn name_paths(field: &str) -> impl Iterator<Item = String> {
    let mut ends: Vec<usize> = field
        .match_indices('.')
        .map(|(place, _)| place + 1)
        .collect();
    ends.insert(0, 0);
    let prefixes = ends.into_iter().rev().map(|end| field[..end].to_owned());
    prefixes.flat_map(|prefix| NAMES.map(|name| format!("{prefix}{name}")))
}

impl Definition {
    /// The path of the names of joints that belong to an array: an array of texts in its own message,
    /// or in one around it.
    pub fn joint_names(&self, field: &str) -> Option<String> {
        name_paths(field).find(|path| {
            let names = Decoder::new(self, &[path]);
            let kind = names.ok().and_then(|names| names.kind(0));
            kind.is_some_and(|kind| kind.is_array() && matches!(kind.element, Element::Text(_)))
        })
    }
}

impl Fields<'_> {
    /// The place of a joint in the names at a path, and its number in the array at another, if that
    /// has one; none without the joint.
    pub fn joint(
        &self,
        values: usize,
        names: usize,
        joint: &str,
    ) -> Option<(usize, Option<Number>)> {
        let place = self.texts(names).position(|name| name == joint)?;
        Some((place, self.numbers(values).nth(place)))
    }
}
