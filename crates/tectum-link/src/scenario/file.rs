//! What a body outside of the process stated, as a file of a run folder.

use tectum::{Error, Result};
use tectum_control::body::{BodySpec, ChannelKind};
use tectum_control::message::{Array, Message};
use toml::{Table, Value};

/// The constants of a body as a TOML document.
pub(crate) fn write(spec: &BodySpec, peer: &str) -> String {
    let channel = |name: &str, unit: &str, [low, high]: [f32; 2]| {
        Table::from_iter([
            ("name".to_owned(), name.into()),
            ("unit".to_owned(), unit.into()),
            ("low".to_owned(), f64::from(low).into()),
            ("high".to_owned(), f64::from(high).into()),
        ])
    };
    let observation = spec.observation.iter().map(|own| {
        let mut table = channel(&own.name, &own.unit, [own.low, own.high]);
        let sizes = own.shape.iter().map(|size| Value::from(*size as i64));
        table.insert("shape".into(), Value::Array(sizes.collect()));
        table.insert("dtype".into(), own.element.code().0.into());
        table.insert("wraps".into(), (own.kind != ChannelKind::Linear).into());
        Value::from(table)
    });
    let action = spec.action.iter().map(|own| {
        let mut table = channel(&own.name, &own.unit, [own.low, own.high]);
        table.insert("shape".into(), Value::Array(Vec::new()));
        table.insert("discrete".into(), own.discrete.into());
        Value::from(table)
    });
    let safe = spec.safe_action.iter();
    let safe: Vec<Value> = safe.map(|number| f64::from(*number).into()).collect();
    Table::from_iter([
        ("name".to_owned(), peer.into()),
        ("period".to_owned(), spec.dt_s.into()),
        ("safe_action".to_owned(), safe.into()),
        (
            "observation".to_owned(),
            Value::Array(observation.collect()),
        ),
        ("action".to_owned(), Value::Array(action.collect())),
    ])
    .to_string()
}

/// Reads what [`write`] wrote: the constants, and the body's own name.
///
/// # Errors
/// `Data` for another document.
pub(crate) fn read(text: &str, name: &str) -> Result<(BodySpec, String)> {
    let mut table: Table = text
        .parse()
        .map_err(|source| Error::data("it is not TOML").with_source(source))?;
    let safe = table.remove("safe_action");
    let safe: Option<Vec<f32>> = safe.as_ref().and_then(Value::as_array).and_then(|safe| {
        let number = |number: &Value| number.as_float().map(|number| number as f32);
        safe.iter().map(number).collect()
    });
    let safe = safe.ok_or_else(|| Error::data("it has no safe action"))?;
    let message = Message::default().with_table("body", &table);
    let body = message
        .map("body")
        .unwrap_or_default()
        .with_array("safe_action", &Array::of_f32(&safe));
    let peer = body.text("name").unwrap_or("").to_owned();
    Ok((BodySpec::from_message(name, &body)?, peer))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_body_is_read_as_it_was_written() {
        for name in ["pendulum", "cart_pole", "rig"] {
            let body = tectum_control::body::body(name, None).expect("built in");
            let spec = body.spec();
            let text = write(spec, "a peer");
            let (read, peer) = read(&text, name).expect("its own text");
            // What a message does not state: a scale.
            let message = spec.to_message(Message::new("spec", 1));
            let stated = BodySpec::from_message(name, &message).expect("valid");
            assert_eq!((read, peer.as_str()), (stated, "a peer"), "{name}");
        }
        assert!(read("a = 1", "a").is_err());
        assert!(read("]", "a").is_err());
    }
}
