//! Hashes of message types.
//!
//! # Source
//! REP-2011 for the hash, REP-2016 for the description that is hashed: JSON with the names and types
//! of all fields, `, ` and `: ` between its parts.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use super::definition::{Definition, Element, Extent, Field, StructType};

impl Definition {
    /// Its hash by REP-2011: `RIHS01_` and 64 hexadecimal digits. Names and types of the fields
    /// determine it; constants, default values and comments do not.
    pub fn type_hash(&self) -> String {
        let types = self.types();
        let mut referenced: Vec<&StructType> = types[1..].iter().collect();
        referenced.sort_by(|one, other| one.name.cmp(&other.name));
        let referenced: Vec<String> = referenced
            .into_iter()
            .map(|own| described(own, types))
            .collect();
        let json = format!(
            "{{\"type_description\": {}, \"referenced_type_descriptions\": [{}]}}",
            described(&types[0], types),
            referenced.join(", ")
        );
        let mut hash = String::from("RIHS01_");
        for byte in Sha256::digest(json.as_bytes()) {
            // Writing to a string does not fail.
            let _ = write!(hash, "{byte:02x}");
        }
        hash
    }
}

fn described(own: &StructType, types: &[StructType]) -> String {
    let fields: Vec<String> = own
        .fields
        .iter()
        .map(|field| described_field(field, types))
        .collect();
    format!(
        "{{\"type_name\": \"{}\", \"fields\": [{}]}}",
        own.name,
        fields.join(", ")
    )
}

fn described_field(field: &Field, types: &[StructType]) -> String {
    let (element, string_capacity, nested) = match field.kind.element {
        Element::Number(primitive) => (primitive.hash_id(), 0, ""),
        Element::Text(None) => (17, 0, ""),
        Element::WideText(None) => (18, 0, ""),
        Element::Text(Some(bound)) => (21, bound, ""),
        Element::WideText(Some(bound)) => (22, bound, ""),
        Element::Struct(place) => (1, 0, types[place].name.as_str()),
    };
    let (array, capacity) = match field.kind.extent {
        Extent::One => (0, 0),
        Extent::Fixed(count) => (48, count),
        Extent::Bounded(maximum) => (96, maximum),
        Extent::Unbounded => (144, 0),
    };
    format!(
        "{{\"name\": \"{}\", \"type\": {{\"type_id\": {}, \"capacity\": {capacity}, \
         \"string_capacity\": {string_capacity}, \"nested_type_name\": \"{nested}\"}}}}",
        field.name,
        element + array
    )
}
