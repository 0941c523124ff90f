//! GGUF files: what their codes represent, compared with the Python package `gguf`
//! (`bench/peers/gguf_blocks.py`); decoders in them, compared with the same weights in safetensors
//! and with Hugging Face transformers (`bench/peers/gguf_models.py`); files that lie.

use std::path::{Path, PathBuf};

use crate::gguf_writer::{Entry, Writer, floats, llama, text};
use tectum::Device;
use tectum_transformer::{
    Checkpoint, Decoder, Encoder, Gguf, Header, Model, SafetensorsWeights, Value, gguf_file,
};

/// Maximum difference of scores from those of transformers, as a share of the maximum.
const TOLERANCE: f32 = 1e-4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/data")
        .join(name)
}

fn devices() -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// A folder that is deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("tectum-gguf-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Place(path)
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).expect("writable");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(file: &Gguf, name: &str) -> Vec<f32> {
    let tensor = file
        .tensor(name)
        .unwrap_or_else(|| panic!("no tensor {name}"));
    let mut numbers = vec![0.0; tensor.shape.iter().product()];
    file.read(name, &tensor.shape, &mut numbers).expect("reads");
    numbers
}

fn whole(value: Value<'_>) -> u32 {
    match value {
        Value::Unsigned(number) => u32::try_from(number).expect("small"),
        Value::Signed(number) => u32::try_from(number).expect("small"),
        other => panic!("{other} is no whole number"),
    }
}

fn bits(numbers: &[f32]) -> Vec<u32> {
    numbers.iter().map(|number| number.to_bits()).collect()
}

/// Which of several NaNs a product gives depends on the CPU; everything else must match to the bit.
#[test]
fn codes_stand_for_the_numbers_of_the_reference_bit_for_bit() {
    let path =
        std::env::var("TECTUM_GGUF_ROWS").map_or_else(|_| data("gguf_rows.gguf"), PathBuf::from);
    let file = Gguf::open(&path).expect("tracked");
    for kind in [
        "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q2_K", "Q3_K", "Q4_K", "Q5_K",
        "Q6_K",
    ] {
        let (got, wanted) = (
            read(&file, &format!("{kind}.codes")),
            read(&file, &format!("{kind}.numbers")),
        );
        assert_eq!(got.len(), wanted.len(), "{kind}");
        let differs = |(got, wanted): (&f32, &f32)| {
            got.to_bits() != wanted.to_bits() && !(got.is_nan() && wanted.is_nan())
        };
        if let Some(index) = got.iter().zip(&wanted).position(differs) {
            panic!(
                "{kind}: number {index} is {}, not {}",
                got[index], wanted[index]
            );
        }
        let finite = wanted.iter().filter(|number| number.is_finite()).count();
        println!("{kind}: {} numbers, {finite} of them finite", wanted.len());
        assert!(finite > wanted.len() / 2, "{kind}");
    }
    let file = Gguf::open(&data("gguf_rows.gguf")).expect("tracked");
    let error = file
        .read("IQ4_NL.codes", &[1, 32], &mut [0.0; 32])
        .expect_err("refused")
        .to_string();
    assert!(
        error.ends_with("gguf_rows.gguf: tensor IQ4_NL.codes: holds IQ4_NL; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K are read"),
        "{error}"
    );
    let error = file
        .read("Q8_0.codes", &[32, 16], &mut [0.0; 512])
        .expect_err("refused")
        .to_string();
    assert!(
        error.ends_with("gguf_rows.gguf: tensor Q8_0.codes is [16, 32], [32, 16] is needed"),
        "{error}"
    );
}

#[test]
fn a_header_of_the_reference_reads_as_it_was_written() {
    let file = Gguf::open(&data("gguf_rows.gguf")).expect("tracked");
    assert_eq!((file.header().version, file.header().alignment), (3, 64));
    assert!(
        file.tensors()
            .iter()
            .all(|tensor| tensor.start.is_multiple_of(64))
    );
    let wanted = [
        ("uint8", Value::Unsigned(255)),
        ("int8", Value::Signed(-128)),
        ("uint16", Value::Unsigned(65_535)),
        ("int16", Value::Signed(-32_768)),
        ("uint32", Value::Unsigned(u32::MAX.into())),
        ("int32", Value::Signed(i32::MIN.into())),
        ("uint64", Value::Unsigned(u64::MAX)),
        ("int64", Value::Signed(i64::MIN)),
        ("float32", Value::F32(1e-5)),
        ("float64", Value::F64(1e-300)),
        ("bool", Value::Bool(true)),
        ("string", Value::Text("three words é".into())),
    ];
    for (name, wanted) in wanted {
        assert_eq!(file.value(&format!("value.{name}")), Some(wanted), "{name}");
    }
    let shown = |name: &str| file.value(name).expect("there").to_string();
    assert_eq!(
        shown("array.texts"),
        "3 of text: \"a\", \"\", \"the third\""
    );
    assert_eq!(shown("array.numbers"), "5 of i32: 3, 1, 4, 1, …");
    assert_eq!(shown("array.floats"), "2 of f32: 0.5, -2.0");
    assert_eq!(
        shown("array.nested"),
        "2 of array: 2 of i32: 1, 2, 1 of i32: 3"
    );
    assert_eq!(file.value("value.none"), None);
}

/// Rows of queries and keys are interleaved in the file, and four types of tensors are mixed.
#[test]
fn a_tiny_model_gives_the_scores_and_tokens_of_transformers() {
    let path = data("tiny_llama.gguf");
    let file = Gguf::open(&path).expect("tracked");
    let array = |key: &str| match file.value(key) {
        Some(Value::Array(array)) => array.values().collect::<Vec<Value<'_>>>(),
        other => panic!("{key}: {other:?}"),
    };
    let [prompt, greedy] = ["tectum.prompt", "tectum.greedy"]
        .map(|key| array(key).into_iter().map(whole).collect::<Vec<u32>>());
    let float = |value: Value<'_>| {
        if let Value::F32(number) = value {
            number
        } else {
            panic!("{value} is no f32")
        }
    };
    let wanted: Vec<f32> = array("tectum.scores").into_iter().map(float).collect();
    assert_eq!(
        Checkpoint::open(&path)
            .and_then(|model| model.end_tokens())
            .expect("reads"),
        [63]
    );
    for device in devices() {
        let mut decoder = Decoder::open(&path, &device, 64).expect("opens");
        assert_eq!(
            decoder.parameters(),
            file.tensors()
                .iter()
                .map(|tensor| tensor.shape.iter().product::<usize>())
                .sum::<usize>()
        );
        assert!(decoder.tensors().all(|name| file.tensor(name).is_some()));
        let mut scores = decoder.feed(&prompt).expect("runs").to_vec();
        for token in &greedy {
            let greatest = (0..scores.len())
                .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
                .expect("scores");
            assert_eq!(greatest as u32, *token, "{}", device.info().id);
            scores = decoder.feed(&[*token]).expect("runs").to_vec();
        }
        let scale = wanted
            .iter()
            .fold(0.0f32, |scale, score| scale.max(score.abs()));
        let worst = scores
            .iter()
            .zip(&wanted)
            .fold(0.0f32, |worst, (got, wanted)| {
                worst.max((got - wanted).abs())
            })
            / scale;
        assert!(
            worst <= TOLERANCE,
            "{}: scores differ by {worst:.1e} of the greatest",
            device.info().id
        );
    }
}

/// The scores after a prompt and after one more token.
fn scores(path: &Path) -> Vec<u32> {
    let mut decoder = Decoder::open(path, &Device::open("cpu").expect("cpu"), 64)
        .unwrap_or_else(|error| panic!("{error}"));
    let prompt: Vec<u32> = (0..41)
        .map(|index| (index * 7919 + 13) % decoder.sizes().vocab_size as u32)
        .collect();
    let whole = decoder.feed_scored(&prompt).expect("runs");
    let next = decoder.feed(&[7]).expect("runs");
    bits(&[&whole, next].concat())
}

#[test]
fn models_in_one_file_have_the_scores_of_their_folders_bit_for_bit() {
    for family in ["llama", "qwen2", "qwen3", "gpt2"] {
        for kind in ["f32", "f16", "q8_0", "q4_0"] {
            let folder = root().join(format!("bench/models/gguf/{family}-{kind}"));
            if !folder.is_dir() {
                eprintln!(
                    "skipped: bench/models/gguf/{family}-{kind} is absent (bench/peers/gguf_models.py): its scores"
                );
                continue;
            }
            let same = scores(&folder.with_extension("gguf")) == scores(&folder);
            assert!(same, "{family} in {kind}");
            if kind == "f32" {
                assert!(
                    scores(&folder) == scores(&root().join("bench/models/decoders").join(family)),
                    "{family} as it was"
                );
            }
            println!("{family} in {kind}: the same bits");
        }
    }
}

/// The name that llama.cpp's converter gives to a tensor of the sample.
fn renamed(name: &str) -> String {
    let parts = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("model.layers", "blk"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.", "attn_"),
        ("mlp.", "ffn_"),
        ("_proj", ""),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
    ];
    parts
        .iter()
        .fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

#[test]
fn the_sample_in_one_file_has_the_scores_of_its_folder_bit_for_bit() {
    let sample = root().join("crates/tectum-transformer/models/sample-decoder");
    let weights = SafetensorsWeights::open(&sample).expect("there");
    let mut file = llama();
    file.tensors.clear();
    let sizes = [
        ("context_length", 512u32),
        ("embedding_length", 64),
        ("block_count", 2),
        ("feed_forward_length", 160),
        ("vocab_size", 512),
    ];
    for (key, size) in sizes.into_iter().chain([
        ("attention.head_count", 4),
        ("attention.head_count_kv", 2),
        ("rope.dimension_count", 16),
    ]) {
        file.set(&format!("llama.{key}"), 4, &size.to_le_bytes());
    }
    for (name, entry) in weights.entries() {
        let mut numbers = vec![0.0; entry.shape.iter().product()];
        weights
            .read(name, &entry.shape, &mut numbers)
            .expect("reads");
        if name.contains("q_proj") || name.contains("k_proj") {
            // Of each head's 16 rows of 64 the first, the ninth, the second, the tenth and so on.
            let rows: Vec<&[f32]> = numbers.chunks(64).collect();
            let turned = (0..rows.len()).flat_map(|row| {
                rows[row / 16 * 16 + row % 16 / 2 + row % 2 * 8]
                    .iter()
                    .copied()
            });
            numbers = turned.collect();
        }
        file.add(&renamed(name), &entry.shape, &numbers);
    }
    let place = Place::new("sample");
    for version in [2, 3] {
        file.version = version;
        let path = place.write("sample.gguf", file.write());
        assert!(scores(&path) == scores(&sample), "version {version}");
    }
    // Codes instead of some weights: the folder has the numbers that they represent.
    for (kind, block, bytes) in [(8, 32, 34), (2, 32, 18)] {
        let mut file = file.clone();
        for tensor in file
            .tensors
            .iter_mut()
            .filter(|tensor| tensor.dimensions.len() == 2)
        {
            tensor.kind = kind;
            let blocks = tensor.data.len() / 4 / block;
            // Scales from 2⁻⁹ to 2⁻⁸, codes that vary.
            let byte = |at: usize| match at % bytes {
                0 => at as u8,
                1 => 0x18,
                _ => (at * 37) as u8,
            };
            tensor.data = (0..blocks * bytes).map(byte).collect();
        }
        let path = place.write("sample.gguf", file.write());
        let same = Place::new(&format!("same-{kind}"));
        std::fs::copy(sample.join("config.json"), same.0.join("config.json")).expect("copies");
        same.write(
            "model.safetensors",
            safetensors(&weights, &Gguf::open(&path).expect("opens")),
        );
        assert!(scores(&path) == scores(&same.0), "type {kind}");
    }
}

/// The shipped file has the weights of the decoder's folder, each within a step of its block of
/// 4-bit codes, with the rows in llama.cpp's order.
#[test]
fn the_shipped_file_is_the_sample_in_codes_of_four_bits() {
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let weights = SafetensorsWeights::open(&models.join("sample-decoder")).expect("there");
    let file = models.join("sample-gguf/model.gguf");
    let place = Place::new("shipped");
    place.write(
        "model.safetensors",
        safetensors(&weights, &Gguf::open(&file).expect("opens")),
    );
    let widened = SafetensorsWeights::open(&place.0).expect("written");
    for (name, entry) in weights.entries() {
        let [exact, coded] = [&weights, &widened].map(|from| {
            let mut numbers = vec![0.0f32; entry.shape.iter().product()];
            from.read(name, &entry.shape, &mut numbers).expect("reads");
            numbers
        });
        for (exact, coded) in exact.chunks(32).zip(coded.chunks(32)) {
            let step = if entry.shape.len() == 1 {
                0.0
            } else {
                exact
                    .iter()
                    .fold(0.0, |most: f32, number| most.max(number.abs()))
                    / 8.0
            };
            assert!(
                exact
                    .iter()
                    .zip(coded)
                    .all(|(exact, coded)| (exact - coded).abs() <= 1.01 * step),
                "{name}: {exact:?} {coded:?}"
            );
        }
    }
    assert!(
        scores(&file)
            .iter()
            .all(|score| f32::from_bits(*score).is_finite())
    );
}

/// The numbers of a file under the names, and in the order of rows, of the sample's own tensors.
fn safetensors(like: &SafetensorsWeights, file: &Gguf) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, entry) in like.entries() {
        let mut numbers = read(file, &renamed(name));
        if name.contains("q_proj") || name.contains("k_proj") {
            let rows: Vec<&[f32]> = numbers.chunks(64).collect();
            let halves = (0..rows.len()).flat_map(|row| {
                rows[row / 16 * 16 + row % 8 * 2 + row % 16 / 8]
                    .iter()
                    .copied()
            });
            numbers = halves.collect();
        }
        let start = data.len();
        data.extend(floats(&numbers));
        header.insert(name.to_owned(), serde_json::json!({"dtype": "F32", "shape": entry.shape, "data_offsets": [start, data.len()]}));
    }
    let header = serde_json::Value::from(header).to_string();
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &data,
    ]
    .concat()
}

/// A file's one key of a type and bytes.
fn key(name: &[u8], kind: u32, value: &[u8]) -> Vec<u8> {
    Writer {
        keys: vec![(name.to_vec(), kind, value.to_vec())],
        ..Writer::new()
    }
    .write()
}

/// A file's one tensor.
fn tensor(dimensions: &[u64], kind: u32, start: u64, bytes: usize) -> Vec<u8> {
    let entry = Entry {
        name: "w".to_owned(),
        dimensions: dimensions.to_vec(),
        kind,
        start: Some(start),
        data: vec![0; bytes],
    };
    Writer {
        tensors: vec![entry],
        ..Writer::new()
    }
    .write()
}

/// An array of a type, of a length and of the bytes that follow.
fn array(element: u32, len: u64, bytes: &[u8]) -> Vec<u8> {
    [&element.to_le_bytes()[..], &len.to_le_bytes(), bytes].concat()
}

#[test]
fn headers_that_lie_are_refused_with_the_place() {
    let version = |version: u32| {
        Writer {
            version,
            ..Writer::new()
        }
        .write()
    };
    let counts = |tensors: u64, keys: u64| {
        [
            &b"GGUF\x03\0\0\0"[..],
            &tensors.to_le_bytes(),
            &keys.to_le_bytes(),
            &[0; 64],
        ]
        .concat()
    };
    let two = |first: Entry, second: Entry| {
        Writer {
            tensors: vec![first, second],
            ..Writer::new()
        }
        .write()
    };
    let entry = |name: &str, start: u64| Entry {
        name: name.to_owned(),
        dimensions: vec![16],
        kind: 0,
        start: Some(start),
        data: vec![0; 64],
    };
    let twice = {
        let mut file = Writer::new();
        file.keys = vec![(b"a".to_vec(), 0, vec![1]), (b"a".to_vec(), 0, vec![1])];
        file.write()
    };
    let deep = (0..5).fold(array(0, 0, &[]), |inner, _| array(9, 1, &inner));
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "not a GGUF file"),
        (b"GGML\x03\0\0\0".to_vec(), "not a GGUF file"),
        (
            b"GGUF\x03".to_vec(),
            "the version: cut short: 4 bytes are needed from byte 4 on, 1 are left",
        ),
        (version(1), "version 1; versions 2 and 3 are read"),
        (version(4), "version 4; versions 2 and 3 are read"),
        (version(3 << 24), "version 3 with the greatest byte first"),
        (
            b"GGUF\x03\0\0\0\x01".to_vec(),
            "the number of tensors: cut short",
        ),
        (
            counts(u64::MAX, 0),
            "the number of tensors: 18446744073709551615; the file has room for ",
        ),
        (
            counts(0, 1 << 40),
            "the number of keys: 1099511627776; the file has room for ",
        ),
        (
            key(b"a", 13, &[0; 8]),
            "key a: is of type 13; there are types 0 to 12",
        ),
        (key(b"a\n", 99, &[0; 8]), "key a\\n: is of type 99"),
        (key(b"\xff", 0, &[0]), "key 0: has a name that is no UTF-8"),
        (
            key(&[b'a'; 70_000], 0, &[0]),
            "key 0: has a name of 70000 bytes",
        ),
        (key(b"a", 7, &[2]), "key a: is 2, neither 0 nor 1"),
        (
            key(b"a", 8, &u64::MAX.to_le_bytes()),
            "key a: cut short: 18446744073709551615 bytes are needed",
        ),
        (
            key(b"a", 9, &array(0, u64::MAX, &[])),
            "key a: cut short: 18446744073709551615 bytes are needed",
        ),
        (
            key(b"a", 9, &array(12, u64::MAX, &[])),
            "key a: cut short: 18446744073709551615 bytes are needed",
        ),
        (
            key(b"a", 9, &array(8, u64::MAX, &[0; 64])),
            "key a: cut short: 8 bytes are needed",
        ),
        (
            key(b"a", 9, &array(9, u64::MAX, &[0; 64])),
            "key a: cut short: 8 bytes are needed from",
        ),
        (key(b"a", 9, &array(13, 0, &[])), "key a: is of type 13"),
        (
            key(b"a", 9, &array(7, 2, &[1, 3])),
            "key a: holds 3, neither 0 nor 1",
        ),
        (
            key(b"a", 9, &deep),
            "key a: arrays within more than 4 arrays",
        ),
        (twice, "key a occurs twice"),
        (
            key(b"general.alignment", 4, &[0; 4]),
            "key general.alignment is 0; a power of two up to 2^30 is needed",
        ),
        (
            key(b"general.alignment", 4, &[24, 0, 0, 0]),
            "key general.alignment is 24",
        ),
        (
            key(b"general.alignment", 8, &text("32")),
            "key general.alignment is \"32\"",
        ),
        (
            tensor(&[1, 1, 1, 1, 1], 0, 0, 4),
            "tensor w: has 5 dimensions; the maximum is 4",
        ),
        (
            tensor(&[1 << 40; 4], 0, 0, 4),
            "tensor w: is [1099511627776, 1099511627776, 1099511627776, 1099511627776] of F32",
        ),
        (
            tensor(&[0, 1 << 62, 4], 0, 0, 4),
            "tensor w: is [4, 4611686018427387904, 0] of F32 from 0 on, more than can be counted",
        ),
        (tensor(&[1], 4, 0, 4), "tensor w: is of unknown type 4"),
        (
            tensor(&[1], 1000, 0, 4),
            "tensor w: is of unknown type 1000",
        ),
        (
            tensor(&[33], 8, 0, 68),
            "tensor w: has rows of 33 elements, no whole number of Q8_0's blocks of 32",
        ),
        (
            tensor(&[16, 2], 2, 0, 18),
            "tensor w: has rows of 16 elements, no whole number of Q4_0's blocks of 32",
        ),
        (
            tensor(&[], 12, 0, 144),
            "tensor w: has rows of 1 elements, no whole number of Q4_K's blocks of 256",
        ),
        (
            tensor(&[1], 0, 4, 8),
            "tensor w begins at 4, no multiple of 32",
        ),
        (
            tensor(&[9], 0, 0, 32),
            "tensor w of 36 bytes begins at 0 of the 32 that the file has for tensors",
        ),
        (
            tensor(&[1], 0, 32, 32),
            "tensor w of 4 bytes begins at 32 of the 32 ",
        ),
        (
            tensor(&[1], 0, u64::MAX - 31, 32),
            "tensor w of 4 bytes begins at 18446744073709551584 of the 32 ",
        ),
        (
            two(entry("a", 0), entry("b", 32)),
            "tensor b overlaps tensor a",
        ),
        (
            two(entry("a", 64), entry("b", 64)),
            "tensor b overlaps tensor a",
        ),
        (two(entry("a", 0), entry("a", 64)), "tensor a occurs twice"),
    ];
    for (bytes, message) in &cases {
        let error = Header::parse(bytes).expect_err(message).to_string();
        assert!(error.starts_with(message), "{error}, not {message}");
    }
    assert!(Header::parse(&two(entry("a", 0), entry("b", 64))).is_ok());
    assert!(
        Header::parse(&tensor(&[0, 5], 0, 0, 4)).is_ok_and(|header| header.tensors()[0].bytes == 0)
    );
    // A file truncated anywhere is rejected, except where only padding is lost.
    let whole = std::fs::read(data("tiny_llama.gguf")).expect("tracked");
    let end = Header::parse(&whole)
        .expect("tracked")
        .tensors()
        .iter()
        .map(|tensor| tensor.start + tensor.bytes)
        .max()
        .expect("tensors");
    for len in (0..end).step_by(7) {
        assert!(
            Header::parse(&whole[..len]).is_err(),
            "cut to {len} of {end}"
        );
    }
    let place = Place::new("cut");
    let path = place.write("a.gguf", &whole[..100]);
    let error = Gguf::open(&path).expect_err("cut short").to_string();
    assert!(error.starts_with(&path.display().to_string()), "{error}");
}

/// Each key and tensor that a decoder cannot use, by its name.
#[test]
fn what_a_decoder_lacks_or_is_not_done_is_refused_with_its_name() {
    type Change = fn(&mut Writer);
    let cases: &[(Change, &str)] = &[
        (|file| file.keys.clear(), "no key general.architecture"),
        (
            |file| file.set("general.architecture", 8, &text("mamba")),
            "general.architecture \"mamba\"; \"gpt2\", \"llama\", \"qwen2\", ",
        ),
        (
            |file| file.keys.retain(|(name, ..)| name != b"llama.block_count"),
            "no key llama.block_count",
        ),
        (
            |file| file.set("llama.block_count", 8, &text("1")),
            "key llama.block_count is no whole number",
        ),
        (
            |file| file.set("llama.block_count", 5, &(-1i32).to_le_bytes()),
            "key llama.block_count is no whole number",
        ),
        (
            |file| file.set("llama.block_count", 4, &2000u32.to_le_bytes()),
            "sizes that no model has",
        ),
        (
            |file| file.set("llama.block_count", 4, &2u32.to_le_bytes()),
            "no tensor blk.1.attn_norm.weight, which has shape [4]",
        ),
        (
            |file| file.set("llama.attention.head_count", 4, &0u32.to_le_bytes()),
            "llama.rope.dimension_count 2 of heads of 0",
        ),
        (
            |file| file.set("llama.attention.head_count_kv", 9, &array(4, 0, &[])),
            "key llama.attention.head_count_kv is no whole number",
        ),
        (
            |file| file.set("llama.attention.head_count_kv", 4, &3u32.to_le_bytes()),
            "sizes that no model has",
        ),
        (
            |file| file.set("llama.rope.dimension_count", 4, &1u32.to_le_bytes()),
            "llama.rope.dimension_count 1 of heads of 2",
        ),
        (
            |file| file.set("llama.vocab_size", 4, &9u32.to_le_bytes()),
            "llama.vocab_size 9; tensor token_embd.weight has 8 rows",
        ),
        (
            |file| file.set("llama.rope.freq_base", 6, &f32::NAN.to_le_bytes()),
            "key llama.rope.freq_base is no number",
        ),
        (
            |file| file.set("llama.rope.scaling.type", 8, &text("yarn")),
            "llama.rope.scaling: scaled rotations are not supported",
        ),
        (
            |file| file.set("llama.rope.scaling.factor", 6, &8f32.to_le_bytes()),
            "llama.rope.scaling: scaled rotations are not supported",
        ),
        (
            |file| file.set("llama.expert_count", 4, &8u32.to_le_bytes()),
            "llama.expert_count: experts are not supported",
        ),
        (
            |file| file.set("llama.attention.sliding_window", 4, &8u32.to_le_bytes()),
            "key llama.attention.sliding_window, which is not known here",
        ),
        (
            |file| file.set("split.count", 2, &2u16.to_le_bytes()),
            "split.count: a model in several files is not supported",
        ),
        (
            |file| file.set("general.quantization_version", 4, &1u32.to_le_bytes()),
            "general.quantization_version 1; 2 is supported",
        ),
        (
            |file| {
                file.tensors
                    .retain(|tensor| tensor.name != "token_embd.weight")
            },
            "no tensor token_embd.weight",
        ),
        (
            |file| {
                file.tensors
                    .retain(|tensor| tensor.name != "blk.0.ffn_up.weight")
            },
            "no tensor blk.0.ffn_up.weight, which has shape [6, 4]",
        ),
        (
            |file| file.tensors[3].dimensions = vec![2, 8],
            "tensor blk.0.attn_q.weight is [8, 2], [4, 4] is needed",
        ),
        (
            |file| file.tensors[3].kind = 26,
            "tensor blk.0.attn_q.weight: holds I32; F32, F16, BF16, Q8_0, Q4_0, Q4_1, Q5_0, Q5_1 and Q2_K to Q6_K are read",
        ),
        (
            |file| file.add("rope_freqs.weight", &[1], &[1.0]),
            "tensor rope_freqs.weight, which no part of the family \"llama\" reads here",
        ),
        (
            |file| file.add("blk.0.ffn_up.bias", &[6], &[0.0; 6]),
            "tensor blk.0.ffn_up.bias, which no part of the family",
        ),
        (
            |file| file.add("blk.0.attn_q.bias", &[4], &[0.0; 4]),
            "no tensor blk.0.attn_k.bias, which has shape [2]",
        ),
    ];
    let (device, place) = (Device::open("null").expect("null"), Place::new("refused"));
    let open = |file: &Writer| Decoder::open(&place.write("m.gguf", file.write()), &device, 16);
    assert!(
        open(&llama()).is_ok_and(|decoder| decoder.sizes().tied_embeddings),
        "as it is"
    );
    for (change, message) in cases.iter().copied() {
        let mut file = llama();
        change(&mut file);
        let error = open(&file).expect_err(message).to_string();
        assert!(
            error.contains("m.gguf: ") && error.contains(message),
            "{error}, not {message}"
        );
    }
    let mut untied = llama();
    untied.add("output.weight", &[8, 4], &[0.5; 32]);
    assert!(
        open(&untied).is_ok_and(|decoder| !decoder.sizes().tied_embeddings),
        "with a table of its own"
    );
}

/// A file by its extension; in a folder its only file, if there are no safetensors.
#[test]
fn a_folder_of_one_file_is_that_file() {
    let place = Place::new("folder");
    assert_eq!(gguf_file(&place.0).expect("reads"), None);
    assert_eq!(gguf_file(Path::new("model.bin")).expect("reads"), None);
    let path = place.write("model.GGUF", llama().write());
    assert_eq!(gguf_file(&path).expect("reads"), Some(path.clone()));
    assert_eq!(gguf_file(&place.0).expect("reads"), Some(path));
    assert!(Decoder::open(&place.0, &Device::open("null").expect("null"), 16).is_ok());
    place.write("other.gguf", b"");
    assert!(
        gguf_file(&place.0).expect_err("two").to_string().ends_with(
            ": 2 GGUF files are in this folder; name one of them: model.GGUF, other.gguf"
        )
    );
    place.write("model.safetensors", b"");
    assert_eq!(gguf_file(&place.0).expect("reads"), None);
}

/// A file that holds an encoder is called one, wherever it is opened.
#[test]
fn files_are_named_for_what_they_hold() {
    let place = Place::new("kinds");
    let holding = |architecture: &str| {
        let mut file = llama();
        file.set("general.architecture", 8, &text(architecture));
        place.write("model.gguf", file.write())
    };
    for name in ["bert", "nomic-bert", "jina-bert-v2", "t5encoder"] {
        let path = holding(name);
        let error = Encoder::read(&path).expect_err("a file").to_string();
        assert!(
            error.ends_with(&format!(
                "model.gguf: it holds an encoder (general.architecture {name:?}), and encoders are not read from GGUF files; an encoder is a folder with config.json"
            )),
            "{error}"
        );
        for error in [
            Checkpoint::open(&path).expect_err("an encoder").to_string(),
            Model::open(&path).expect_err("an encoder").to_string(),
        ] {
            assert!(
                error.contains(&format!(
                    "model.gguf: general.architecture {name:?} is that of an encoder, which `tectum embed` reads from a folder with config.json"
                )),
                "{error}"
            );
        }
    }
    let message = |name: &str| {
        Encoder::read(&holding(name))
            .expect_err("a file")
            .to_string()
    };
    assert!(
        message("llama")
            .contains("it holds a decoder, which `tectum generate` runs; an encoder is")
    );
    assert!(message("clip").contains(
        "it holds neither an encoder nor a decoder that is known (general.architecture \"clip\")"
    ));
    let path = place.write("model.gguf", "no such file");
    let error = Encoder::read(&path).expect_err("no file").to_string();
    assert!(error.contains("not a GGUF file"), "{error}");
}

/// The graph of layers that the file lacks is not built.
#[test]
fn a_file_with_too_few_layers_is_refused_by_the_first_that_it_lacks() {
    let place = Place::new("layers");
    let mut file = llama();
    let path = place.write("model.gguf", file.write());
    let layers = Checkpoint::open(&path).expect("opens").sizes().layers;
    file.set("llama.block_count", 4, &1000u32.to_le_bytes());
    let path = place.write("model.gguf", file.write());
    let error = Checkpoint::open(&path).expect_err("too few").to_string();
    assert!(
        error.contains(&format!(
            "no tensor blk.{layers}.attn_norm.weight, which has shape "
        )),
        "{error}"
    );
}
