//! Messages of ROS compared with those of rosbags (`data/ros_messages.py`), and round trips.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value as Json;
use tectum_control::ros::{
    Decoder, Definition, Element, Encoder, Field, INTERFACES, Number, Numbers, Primitive, Value,
};

/// A type with every kind of field.
pub const EVERY: &str = "example_msgs/msg/Every";

#[derive(Deserialize)]
pub struct Vectors {
    /// Of [`EVERY`].
    pub definition: String,
    pub hashes: BTreeMap<String, String>,
    pub messages: Vec<Vector>,
}

#[derive(Deserialize)]
pub struct Vector {
    #[serde(rename = "type")]
    pub kind: String,
    order: String,
    /// By path.
    values: BTreeMap<String, Json>,
    #[serde(rename = "bytes")]
    digits: String,
}

impl Vector {
    pub fn bytes(&self) -> Vec<u8> {
        let byte = |place: usize| u8::from_str_radix(&self.digits[place..place + 2], 16);
        let bytes = (0..self.digits.len()).step_by(2).map(byte);
        bytes.collect::<Result<_, _>>().expect("hexadecimal digits")
    }
}

pub fn vectors() -> Vectors {
    serde_json::from_str(include_str!("data/ros_messages.json")).expect("the file of rosbags")
}

fn definition(vectors: &Vectors, kind: &str) -> Definition {
    match kind {
        EVERY => Definition::parse(EVERY, &vectors.definition),
        kind => Definition::known(kind),
    }
    .unwrap_or_else(|error| panic!("{kind}: {error}"))
}

/// A value as the interface of the encoder takes it.
enum Owned {
    Number(Number),
    Numbers(Vec<Number>),
    Text(String),
    Texts(Vec<String>),
}

impl Owned {
    fn of(json: &Json, is_text: bool) -> Self {
        let number = |json: &Json| match json {
            Json::Bool(flag) => Number::Unsigned(u64::from(*flag)),
            json if json.is_u64() => Number::Unsigned(json.as_u64().expect("checked")),
            json if json.is_i64() => Number::Signed(json.as_i64().expect("checked")),
            json => Number::Float(json.as_f64().expect("a number")),
        };
        let text = |json: &Json| json.as_str().expect("a text").to_owned();
        match (json, is_text) {
            (Json::Array(items), true) => Self::Texts(items.iter().map(text).collect()),
            (Json::Array(items), false) => Self::Numbers(items.iter().map(number).collect()),
            (json, true) => Self::Text(text(json)),
            (json, false) => Self::Number(number(json)),
        }
    }
}

fn encode(encoder: &Encoder, values: &[Owned]) -> tectum::Result<Vec<u8>> {
    let texts: Vec<Vec<&str>> = values
        .iter()
        .map(|value| match value {
            Owned::Texts(texts) => texts.iter().map(String::as_str).collect(),
            _ => Vec::new(),
        })
        .collect();
    let values = values.iter().zip(&texts).map(|(value, texts)| match value {
        Owned::Number(number) => Value::Number(*number),
        Owned::Numbers(numbers) => Value::Numbers(Numbers::Any(numbers)),
        Owned::Text(text) => Value::Text(text),
        Owned::Texts(_) => Value::Texts(texts),
    });
    let mut bytes = Vec::new();
    let values: Vec<Value<'_>> = values.collect();
    encoder.encode(&values, &mut bytes).map(|()| bytes)
}

fn is_text(decoder: &Decoder, path: usize) -> bool {
    let kind = decoder.kind(path).expect("a path");
    matches!(kind.element, Element::Text(_))
}

/// Whether a decoded field is the value.
fn has(decoder: &mut Decoder, path: usize, message: &[u8], value: &Owned) -> bool {
    let same = |own: Number, other: Number| match (own, other) {
        (Number::Float(own), other) => own == other.to_f64(),
        (Number::Signed(own), Number::Unsigned(other)) => u64::try_from(own) == Ok(other),
        (own, other) => own == other,
    };
    let fields = decoder.decode(message).expect("a message");
    match value {
        Owned::Number(number) => fields.number(path).is_some_and(|own| same(own, *number)),
        Owned::Numbers(numbers) => {
            fields.numbers(path).len() == numbers.len()
                && fields
                    .numbers(path)
                    .zip(numbers)
                    .all(|(own, other)| same(own, *other))
        }
        Owned::Text(text) => fields.text(path) == Some(text),
        Owned::Texts(texts) => fields.texts(path).eq(texts.iter().map(String::as_str)),
    }
}

#[test]
fn type_hashes_are_those_of_jazzy() {
    let vectors = vectors();
    for (kind, hash) in &vectors.hashes {
        assert_eq!(&definition(&vectors, kind).type_hash(), hash, "{kind}");
    }
    let known = INTERFACES.map(|(kind, _)| kind);
    let missing: Vec<_> = known
        .iter()
        .filter(|kind| !vectors.hashes.contains_key(**kind))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn messages_of_rosbags_are_read_field_by_field_and_written_byte_by_byte() {
    let vectors = vectors();
    let (mut written, mut read) = (0, 0);
    for vector in &vectors.messages {
        let definition = definition(&vectors, &vector.kind);
        let paths: Vec<&String> = vector.values.keys().collect();
        let mut decoder = Decoder::new(&definition, &paths).expect("paths");
        let message = vector.bytes();
        let mut values = Vec::new();
        for (path, (name, json)) in vector.values.iter().enumerate() {
            let value = Owned::of(json, is_text(&decoder, path));
            let is_same = has(&mut decoder, path, &message, &value);
            assert!(is_same, "{}: {name} is not {json}", vector.kind);
            values.push(value);
            read += 1;
        }
        if vector.order == "little" {
            let encoder = Encoder::new(&definition, &paths).expect("paths");
            let own = encode(&encoder, &values).expect("values that fit");
            assert_eq!(own, message, "{}", vector.kind);
            written += 1;
        }
    }
    assert!(written >= 30 && read > 500, "{written} {read}");
}

#[test]
fn a_message_that_ends_anywhere_is_refused() {
    let vectors = vectors();
    for vector in &vectors.messages {
        let definition = definition(&vectors, &vector.kind);
        let paths: Vec<&String> = vector.values.keys().collect();
        let mut decoder = Decoder::new(&definition, &paths).expect("paths");
        let message = vector.bytes();
        for end in 0..message.len() {
            assert!(
                decoder.decode(&message[..end]).is_err(),
                "{} {end}",
                vector.kind
            );
        }
        let mut longer = message.clone();
        longer.resize(message.len() + 7, 0);
        assert!(decoder.decode(&longer).is_ok(), "{}", vector.kind);
        longer.push(0);
        assert!(decoder.decode(&longer).is_err(), "{}", vector.kind);
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn number(&mut self, primitive: Primitive) -> Number {
        match primitive.whole_range() {
            None if primitive == Primitive::Float32 => {
                Number::Float(f64::from((self.next() as i32) as f32 * 0.37))
            }
            None => Number::Float((self.next() as i64) as f64 * 1e-3),
            Some((0, high)) => Number::Unsigned(self.next() & high as u64),
            Some(_) => Number::Signed((self.next() as i64) >> (64 - 8 * primitive.size())),
        }
    }
}

/// Random values for the fields of one type, whole arrays included.
fn random_values(
    definition: &Definition,
    place: usize,
    before: &str,
    random: &mut Random,
    values: &mut Vec<(String, Owned)>,
) {
    use tectum_control::ros::Extent;
    for Field { name, kind, .. } in &definition.types()[place].fields {
        let path = format!("{before}{name}");
        let count = match kind.extent {
            Extent::One => 1,
            Extent::Fixed(size) => size as usize,
            Extent::Bounded(maximum) => random.below(maximum as usize + 1),
            Extent::Unbounded => random.below(4),
        };
        let mut text = |bound: Option<u32>| {
            let length = random.below(bound.unwrap_or(9).min(9) as usize + 1);
            (0..length)
                .map(|_| char::from(b'a' + random.below(26) as u8))
                .collect::<String>()
        };
        let value = match (kind.element, kind.is_array()) {
            (Element::Struct(inner), false) => {
                random_values(definition, inner, &format!("{path}."), random, values);
                continue;
            }
            (Element::Struct(inner), true) => {
                for index in 0..count {
                    random_values(
                        definition,
                        inner,
                        &format!("{path}[{index}]."),
                        random,
                        values,
                    );
                }
                continue;
            }
            (Element::Text(bound), false) => Owned::Text(text(bound)),
            (Element::Text(bound), true) => Owned::Texts((0..count).map(|_| text(bound)).collect()),
            (Element::Number(primitive), false) => Owned::Number(random.number(primitive)),
            (Element::Number(primitive), true) => {
                Owned::Numbers((0..count).map(|_| random.number(primitive)).collect())
            }
            (Element::WideText(_), _) => continue,
        };
        values.push((path, value));
    }
}

#[test]
fn random_messages_are_read_as_they_were_written() {
    let vectors = vectors();
    let mut random = Random(7);
    let kinds: Vec<&str> = INTERFACES
        .map(|(kind, _)| kind)
        .into_iter()
        .chain([EVERY])
        .collect();
    for round in 0..400 {
        let definition = definition(&vectors, kinds[round % kinds.len()]);
        let mut values = Vec::new();
        random_values(&definition, 0, "", &mut random, &mut values);
        let (paths, values): (Vec<String>, Vec<Owned>) = values.into_iter().unzip();
        let encoder = Encoder::new(&definition, &paths).expect("paths");
        let message = encode(&encoder, &values).expect("values that fit");
        let mut decoder = Decoder::new(&definition, &paths).expect("paths");
        for (path, value) in values.iter().enumerate() {
            assert!(
                has(&mut decoder, path, &message, value),
                "{} {}",
                definition.name(),
                paths[path]
            );
        }
    }
}

#[test]
fn definitions_are_read_back_from_their_text() {
    let vectors = vectors();
    for kind in INTERFACES.map(|(kind, _)| kind).into_iter().chain([EVERY]) {
        let definition = definition(&vectors, kind);
        let again = Definition::parse(kind, &definition.to_text()).expect("its own text");
        assert_eq!(again, definition);
    }
    let every = definition(&vectors, EVERY);
    let listed = every.listed_fields();
    for field in [
        "flag: bool",
        "texts[]: string",
        "more[].place[2]: int16",
        "short_text: string<=12",
    ] {
        assert!(listed.iter().any(|own| own == field), "{field}: {listed:?}");
    }
    let text = "string x 'a # \"b\"' # it's a comment\r\nuint8[<=3] y [1, 0x2]\nbool z true # isn't\n\
                float32 w -1e3\nint64 BIG=-0x8000000000000000\nstring[2] s [\"a, b\", c]\nOwn o\n\
                ===\nMSG: p/Own\nint8 v\n===\nMSG: p/Unused\nNowhere n\n";
    let definition = Definition::parse("p/T", text).expect("a definition");
    assert_eq!(
        definition.to_text(),
        "int64 BIG=-9223372036854775808\nstring x \"a # \\\"b\\\"\"\nuint8[<=3] y [1, 2]\nbool z 1\n\
         float32 w -1000.0\nstring[2] s [\"a, b\", \"c\"]\np/Own o\n"
            .to_owned()
            + &"=".repeat(80)
            + "\nMSG: p/Own\nint8 v\n"
    );
    let encoder = Encoder::new(&definition, &["o.v"]).expect("a field");
    let mut message = Vec::new();
    encoder
        .encode(&[Value::Number(Number::Signed(-3))], &mut message)
        .expect("it fits");
    let mut decoder =
        Decoder::new(&definition, &["x", "y", "s[1]", "w", "z", "o.v"]).expect("fields");
    let fields = decoder.decode(&message).expect("a message");
    assert_eq!(
        (fields.text(0), fields.text(2)),
        (Some("a # \"b\""), Some("c"))
    );
    assert_eq!(fields.bytes(1), Some([1, 2].as_slice()));
    assert_eq!(
        (fields.number(3), fields.number(4)),
        (Some(Number::Float(-1e3)), Some(Number::Unsigned(1)))
    );
    assert_eq!(fields.number(5), Some(Number::Signed(-3)));
}

#[test]
fn definitions_that_are_not_whole_are_refused_by_line() {
    let nested = |depth: usize| {
        let types = (1..depth).map(|level| format!("===\nMSG: p/T{level}\nT{} x\n", level + 1));
        format!(
            "T1 x\n{}===\nMSG: p/T{depth}\nint8 x\n",
            types.collect::<String>()
        )
    };
    assert!(Definition::parse("p/T", &nested(31)).is_ok());
    // The second chain ends in the first, which was resolved before.
    let chains: String = (1..20)
        .map(|level| {
            let next = level + 1;
            let end = if level == 19 { "T1 x" } else { "" };
            let inner = if level == 19 {
                String::new()
            } else {
                format!("U{next} x")
            };
            format!("===\nMSG: p/T{level}\nT{next} x\n===\nMSG: p/U{level}\n{inner}{end}\n")
        })
        .collect();
    let chained = format!("T1 a\nU1 b\n{chains}===\nMSG: p/T20\nint8 x\n");
    let error = Definition::parse("p/T", &chained).expect_err("39 types deep");
    let text = error.to_string();
    assert!(
        text.ends_with("types are nested more than 32 deep"),
        "{text}"
    );
    let long = "x".repeat((1 << 20) + 1);
    let many: String = (0..10_001)
        .map(|number| format!("int8 f{number}\n"))
        .collect();
    let deep = nested(32);
    for (text, expected) in [
        (
            "int9 x\n",
            "line 1: type int9 is no number or string, and the text does not define it",
        ),
        (
            "int8\n",
            "line 1: \"int8\" has no name of a field after its type",
        ),
        ("\nint8 x\nint8 x\n", "line 3: p/msg/T has two fields \"x\""),
        ("int8[0] x\n", "line 1: \"int8[0]\" is no type of a field"),
        ("int8<=3 x\n", "line 1: \"int8<=3\" is no type of a field"),
        (
            "int8[99999999999] x\n",
            "line 1: \"int8[99999999999]\" is no type of a field",
        ),
        ("int8 x 300\n", "line 1: field x: \"300\" is no int8"),
        ("int8 X=1.5\n", "line 1: constant X: \"1.5\" is no int8"),
        (
            "int8[2] x [1]\n",
            "line 1: field x: the default value has 1 elements, which is not its size",
        ),
        (
            "string<=2 x \"abc\"\n",
            "line 1: field x: \"abc\" has a length of 3, the maximum is 2",
        ),
        ("string x \"abc\n", "line 1: field x: no quote ends \"abc"),
        (
            "p/Other X=1\n",
            "line 1: constant X: p/Other has no constants",
        ),
        ("T x\n", "line 1: p/msg/T contains itself"),
        (
            "A a\n===\nMSG: p/A\nT x\n",
            "line 1: line 4: p/msg/T contains itself",
        ),
        (
            "int8 x\n===\nint8 y\n",
            "line 3: \"int8 y\" follows a line of =, needs MSG: package/Type",
        ),
        (
            "int8 x\n===\nIDL: p/msg/A\n",
            "line 3: it is a definition in IDL; only the text of .msg files is read",
        ),
        (
            "A a\n===\nMSG: p/A\nint8 x\n===\nMSG: p/A\nint8 y\n",
            "p/msg/A is defined twice, in two ways",
        ),
        (
            long.as_str(),
            "it has 1048577 bytes, the maximum is 1048576",
        ),
        (
            many.as_str(),
            "line 10001: more than 10000 types, fields and constants",
        ),
    ] {
        let error = Definition::parse("p/T", text)
            .expect_err(expected)
            .to_string();
        assert_eq!(error, format!("definition of p/T: {expected}"));
    }
    let error = Definition::parse("p/T", &deep)
        .expect_err("too deep")
        .to_string();
    assert!(
        error.ends_with("types are nested more than 32 deep"),
        "{error}"
    );
    let error = Definition::parse("p", "").expect_err("no type").to_string();
    assert_eq!(
        error,
        "definition of p: \"p\" is no name of a type, such as package/msg/Type"
    );
}

#[test]
fn paths_and_values_that_do_not_fit_are_refused_by_name() {
    let joints = Definition::known("sensor_msgs/msg/JointState").expect("known");
    let trajectory = Definition::known("trajectory_msgs/msg/JointTrajectory").expect("known");
    let wide = Definition::parse("p/Wide", "wstring w\nint8 x\n").expect("a definition");
    let own = "sensor_msgs/msg/JointState has no field";
    for (definition, path, expected) in [
        (
            &joints,
            "positon",
            format!("field \"positon\": {own} \"positon\", perhaps \"position\"; it has header, name, position, velocity, effort"),
        ),
        (&joints, "header.stamp", "field \"header.stamp\": stamp is a message with the fields sec, nanosec".into()),
        (&joints, "position.x", "field \"position.x\": position is no message and has no fields".into()),
        (&joints, "position[x]", "field \"position[x]\": \"position[x]\" has no index from 0 to 65535 between the brackets".into()),
        (&joints, "header[0].stamp.sec", "field \"header[0].stamp.sec\": header is no array".into()),
        (&joints, "", format!("field \"\": {own} \"\"; it has header, name, position, velocity, effort")),
        (&trajectory, "points.effort", "field \"points.effort\": points is an array of messages, which needs an index: points[0]".into()),
        (&wide, "x", "p/msg/Wide: field w of p/msg/Wide is a wstring, whose layout depends on the middleware".into()),
    ] {
        let error = Decoder::new(definition, &[path]).expect_err(&expected).to_string();
        assert_eq!(error, expected);
    }
    let mut message = Vec::new();
    let encoder = Encoder::new(&joints, &["position[2]", "name"]).expect("fields");
    let values = [Value::Number(Number::Float(1.5)), Value::Texts(&["a", "é"])];
    encoder.encode(&values, &mut message).expect("they fit");
    let mut decoder = Decoder::new(&joints, &["position"]).expect("a field");
    let positions = decoder
        .decode(&message)
        .expect("a message")
        .numbers(0)
        .map(Number::to_f64);
    assert!(positions.eq([0.0, 0.0, 1.5]));
    let mut decoder = Decoder::new(&joints, &["position[3]"]).expect("a field");
    assert_eq!(
        decoder.decode(&message).expect_err("too short").to_string(),
        "sensor_msgs/msg/JointState: position: position[3]: the element 3 is needed, the array has 3"
    );
    for (values, expected) in [
        (
            [Value::Text("a"), Value::Texts(&[])],
            "field \"position[2]\": it is float64, the value is of another kind",
        ),
        (
            [values[0], Value::Text("a")],
            "field \"name\": it is an array of string, the value is of another kind",
        ),
        (
            [values[0], Value::Texts(&["a\0"])],
            "field \"name\": the text contains a zero",
        ),
    ] {
        let error = encoder
            .encode(&values, &mut message)
            .expect_err(expected)
            .to_string();
        assert_eq!(error, expected);
    }
    let time = Definition::known("builtin_interfaces/msg/Time").expect("known");
    let encoder = Encoder::new(&time, &["nanosec"]).expect("a field");
    for number in [
        Number::Signed(-1),
        Number::Float(0.5),
        Number::Float(f64::NAN),
        Number::Float(5e9),
    ] {
        let error = encoder
            .encode(&[Value::Number(number)], &mut message)
            .expect_err("no uint32");
        assert!(error.to_string().ends_with("is no uint32"), "{error}");
    }
    let twice = Encoder::new(&joints, &["effort[0]", "effort"])
        .expect_err("twice")
        .to_string();
    assert_eq!(twice, "two paths set the same field: effort, effort[0]");
    let large = Definition::parse("p/L", "float64[4000000] x\n").expect("a definition");
    let error = Encoder::new(&large, &["x[0]"])
        .expect_err("too large")
        .to_string();
    assert_eq!(error, "p/msg/L: its messages have more than 16777216 bytes");
}
