//! Decoders compared with Hugging Face transformers (`bench/peers/decoders.py`), with the graph's
//! float64 evaluator, and with themselves fed in different parts.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tectum::{CacheFormats, Device};
use tectum_graph::{Graph, Node, Tensor};
use tectum_transformer::{
    Checkpoint, Decoder, Encoder, FinishReason, GenerateOptions, Generation, Model,
    SafetensorsWeights, SamplingParams, Tokens, generate, generate_each,
};

/// Maximum difference of scores, as a share of the maximum of a row.
const TOLERANCE: f32 = 1e-4;
/// Tokens that the reference chose after each prompt.
const GREEDY: usize = 64;

pub fn devices() -> Vec<Device> {
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

pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn checkpoint() -> Checkpoint {
    Checkpoint::open(&sample()).expect("opens")
}

fn sample() -> PathBuf {
    root().join("crates/tectum-transformer/models/sample-decoder")
}

/// A folder that is deleted at the end.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Place {
        let path =
            std::env::temp_dir().join(format!("tectum-decoders-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Place(path)
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.0.join(name), bytes).expect("writable");
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An entry of the golden file.
#[derive(Deserialize)]
struct Row {
    prompt: usize,
    greedy: Vec<u32>,
    after_prompt: Vec<f32>,
    after_greedy: Vec<f32>,
    #[serde(default)]
    config: serde_json::Value,
    #[serde(default)]
    tensors: BTreeMap<String, Vec<usize>>,
}

fn golden() -> BTreeMap<String, Row> {
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/decoders.json"))
        .expect("tracked");
    let whole: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&text).expect("JSON");
    let rows = whole.into_iter().filter(|(_, row)| row.is_object());
    rows.map(|(name, row)| (name, serde_json::from_value(row).expect("a row")))
        .collect()
}

fn prompt(count: usize, tokens: usize) -> Vec<u32> {
    (0..count)
        .map(|index| ((index * 7919 + 13) % tokens) as u32)
        .collect()
}

/// `value` of `bench/peers/decoders.py`.
fn weights(name: &str, shape: &[usize]) -> Vec<f32> {
    let state = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |state, byte| {
        (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let unit = |index: u64| {
        let mixed = state.wrapping_add(index.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 57) as f32 / 64.0 - 1.0
    };
    let scaled = |unit: f32| match shape.len() {
        1 if name.ends_with("bias") => unit / 4.0,
        1 => 1.0 + unit / 2.0,
        _ if name.contains("embed") => unit,
        _ => unit / 2.0,
    };
    (1..=shape.iter().product::<usize>() as u64)
        .map(|index| scaled(unit(index)))
        .collect()
}

/// The bytes of one file of tensors, in a type that holds all their values.
pub fn safetensors<'a>(
    tensors: impl Iterator<Item = (&'a String, &'a Vec<usize>)>,
    dtype: &str,
) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape) in tensors {
        let start = data.len();
        for value in weights(name, shape) {
            match dtype {
                "F32" => data.extend(value.to_le_bytes()),
                "BF16" => data.extend(&value.to_bits().to_le_bytes()[2..]),
                _ => data
                    .extend((tectum::kernel::pack::to_f16(value.to_bits()) as u16).to_le_bytes()),
            }
        }
        let entry = serde_json::json!({"dtype": dtype, "shape": shape, "data_offsets": [start, data.len()]});
        header.insert(name.clone(), entry);
    }
    let header = serde_json::Value::from(header).to_string();
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        &data,
    ]
    .concat()
}

/// Writes a model of the golden file: GPT-2's in F16, Llama's in BF16, Qwen2's in two files of F32,
/// Qwen3's in one.
fn write_model(place: &Place, family: &str, row: &Row) {
    place.write("config.json", row.config.to_string());
    if family != "qwen2" {
        let dtype = match family {
            "gpt2" => "F16",
            "llama" => "BF16",
            _ => "F32",
        };
        return place.write("model.safetensors", safetensors(row.tensors.iter(), dtype));
    }
    let half = row.tensors.len() / 2;
    place.write(
        "one.safetensors",
        safetensors(row.tensors.iter().take(half), "F32"),
    );
    place.write(
        "two.safetensors",
        safetensors(row.tensors.iter().skip(half), "F32"),
    );
    let file = |index: usize| {
        if index < half {
            "one.safetensors"
        } else {
            "two.safetensors"
        }
    };
    let map: BTreeMap<&String, &str> = row
        .tensors
        .keys()
        .enumerate()
        .map(|(index, name)| (name, file(index)))
        .collect();
    place.write(
        "model.safetensors.index.json",
        serde_json::json!({"weight_map": map}).to_string(),
    );
}

fn assert_near(got: &[f32], wanted: &[f32], place: &str) {
    let scale = wanted
        .iter()
        .fold(0.0f32, |scale, value| scale.max(value.abs()));
    for (index, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        assert!(
            (got - wanted).abs() <= TOLERANCE * scale,
            "{place}: score {index} is {got}, not {wanted} (of {scale})"
        );
    }
}

/// The token of the maximum score each time, and the scores after the last.
fn go_on(decoder: &mut Decoder, prompt: &[u32], count: usize) -> (Vec<u32>, Vec<f32>, Vec<f32>) {
    let greatest = |scores: &[f32]| {
        (0..scores.len())
            .max_by(|&a, &b| scores[a].total_cmp(&scores[b]))
            .expect("scores") as u32
    };
    let after_prompt = decoder.feed(prompt).expect("runs").to_vec();
    let (mut tokens, mut last) = (Vec::new(), after_prompt.clone());
    for _ in 0..count {
        tokens.push(greatest(&last));
        last = decoder
            .feed(&tokens[tokens.len() - 1..])
            .expect("runs")
            .to_vec();
    }
    (tokens, after_prompt, last)
}

#[test]
fn small_models_give_the_scores_and_tokens_of_the_reference() {
    for (family, row) in golden() {
        let place = Place::new(&format!("golden-{family}"));
        let folder = if family == "sample-decoder" {
            sample()
        } else {
            place.0.clone()
        };
        if family != "sample-decoder" {
            write_model(&place, &family, &row);
        }
        for device in devices() {
            let mut decoder = Decoder::open(&folder, &device, usize::MAX)
                .unwrap_or_else(|error| panic!("{family}: {error}"));
            let prompt = prompt(row.prompt, decoder.sizes().vocab_size);
            let (tokens, after_prompt, after_greedy) = go_on(&mut decoder, &prompt, GREEDY);
            let name = format!("{family} on {}", device.info().id);
            assert_near(&after_prompt, &row.after_prompt, &name);
            assert_eq!(tokens, row.greedy, "{name}");
            assert_near(&after_greedy, &row.after_greedy, &name);
        }
    }
}

/// Models as `save_pretrained` writes them.
#[test]
fn models_of_transformers_give_its_scores_and_tokens() {
    #[derive(Deserialize)]
    struct Reference {
        prompt: Vec<u32>,
        greedy: Vec<u32>,
    }
    for family in ["gpt2", "llama", "qwen2", "qwen3"] {
        let folder = root().join("bench/models/decoders").join(family);
        let Ok(text) = std::fs::read(folder.join("expected.json")) else {
            eprintln!(
                "skipped: bench/models/decoders/{family} is absent (bench/peers/decoders.py): its scores and tokens"
            );
            continue;
        };
        let reference: Reference = serde_json::from_slice(&text).expect("JSON");
        let scores = std::fs::read(folder.join("scores.f32")).expect("beside it");
        let scores: Vec<f32> = scores
            .as_chunks()
            .0
            .iter()
            .map(|bytes| f32::from_le_bytes(*bytes))
            .collect();
        for device in devices() {
            let name = format!("{family} on {}", device.info().id);
            let mut decoder = Decoder::open(&folder, &device, 128)
                .unwrap_or_else(|error| panic!("{name}: {error}"));
            let got = decoder.feed_scored(&reference.prompt).expect("runs");
            let tokens = decoder.sizes().vocab_size;
            assert_eq!(got.len(), scores.len(), "{name}");
            for (index, (got, wanted)) in got.chunks(tokens).zip(scores.chunks(tokens)).enumerate()
            {
                assert_near(got, wanted, &format!("{name}, after token {index}"));
            }
            decoder.truncate(0);
            assert_eq!(
                go_on(&mut decoder, &reference.prompt, GREEDY).0,
                reference.greedy,
                "{name}"
            );
        }
    }
}

/// Parameters in the evaluator's form.
fn parameters(graph: &Graph, weights: &SafetensorsWeights) -> Vec<(Node, Tensor)> {
    let read = |(name, node, shape): (&str, Node, tectum_graph::Shape)| {
        let sizes = shape.sizes().expect("fixed");
        let mut data = vec![0.0f32; sizes.iter().product()];
        weights.read(name, &sizes, &mut data).expect("there");
        (
            node,
            Tensor::new(shape, data.into_iter().map(f64::from).collect()).expect("fits"),
        )
    };
    graph.parameters().map(read).collect()
}

/// The scores after each token by the graph's evaluator, which uses neither fusion, parts nor
/// devices.
fn in_float64(decoder: &Decoder, weights: &SafetensorsWeights, tokens: &[u32]) -> Vec<f64> {
    let time = tokens.len();
    let graph = decoder
        .graph()
        .bind(&[('B', 1), ('T', time), ('S', time), ('R', time)])
        .expect("binds");
    let mut feeds = parameters(&graph, weights);
    for (name, node, shape) in graph.inputs() {
        let places = (0..time).map(|index| index as f64).collect();
        let data = match name {
            "ids" => tokens.iter().map(|&token| f64::from(token)).collect(),
            "spans" => vec![0.0, time as f64],
            _ => places,
        };
        feeds.push((node, Tensor::new(shape, data).expect("fits")));
    }
    // The cache contents after the kept tokens do not matter.
    feeds.extend(graph.states().map(|(_, node, shape)| {
        (
            node,
            Tensor::new(shape, vec![3.0; shape.elements().expect("fixed")]).expect("fits"),
        )
    }));
    graph
        .evaluate(&feeds)
        .expect("fed")
        .swap_remove(0)
        .data()
        .to_vec()
}

/// A text fed whole, one token at a time, and in parts around the ends of buckets has the same
/// scores.
#[test]
fn a_text_has_one_meaning_in_whatever_parts_it_is_fed() {
    let tokens = prompt(90, 512);
    let weights = SafetensorsWeights::open(&sample()).expect("there");
    for device in devices() {
        let mut decoder = Decoder::open(&sample(), &device, 128).expect("opens");
        let whole = decoder.feed_scored(&tokens).expect("runs");
        let wanted: Vec<f32> = in_float64(&decoder, &weights, &tokens)
            .into_iter()
            .map(|score| score as f32)
            .collect();
        let id = &device.info().id;
        let at = |index: usize| &wanted[index * 512..][..512];
        for index in 0..tokens.len() {
            assert_near(
                &whole[index * 512..][..512],
                at(index),
                &format!("{id}, whole, after token {index}"),
            );
        }
        for parts in [
            vec![1; 20],
            vec![8, 1, 9, 7, 16, 17, 32],
            vec![64, 1, 25],
            vec![90],
        ] {
            decoder.truncate(0);
            let mut fed = 0;
            for part in parts {
                let scores = decoder
                    .feed(&tokens[fed..fed + part])
                    .expect("runs")
                    .to_vec();
                fed += part;
                assert_near(
                    &scores,
                    at(fed - 1),
                    &format!("{id}, a part of {part} up to {fed}"),
                );
            }
        }
        // Truncated tokens have no effect.
        decoder.truncate(40);
        let scores = decoder.feed(&tokens[40..50]).expect("runs").to_vec();
        assert_near(&scores, at(49), &format!("{id}, after forgetting"));
    }
}

/// Scores of a text under each format, compared with those of f32 as a share of a row's greatest:
/// fed whole (what a run adds is read as it comes, but by f16), then after a context that is codes.
/// Bounds are twice what was seen; what a format may cost is held by `cache_errors.rs`.
#[test]
fn fewer_bits_change_scores_by_as_much_as_they_leave_out() {
    let tokens = prompt(200, 512);
    let worst = |got: &[f32], wanted: &[f32]| {
        let scale = wanted
            .iter()
            .fold(0.0f32, |scale, value| scale.max(value.abs()));
        got.iter().zip(wanted).fold(0.0f32, |worst, (got, wanted)| {
            worst.max((got - wanted).abs())
        }) / scale
    };
    for device in devices() {
        let scores = |formats: CacheFormats| {
            let mut decoder =
                Decoder::new(&checkpoint(), &device, 256, formats, None).expect("opens");
            let whole = decoder.feed(&tokens[..150]).expect("runs").to_vec();
            (whole, decoder.feed(&tokens[150..]).expect("runs").to_vec())
        };
        let wanted = scores(CacheFormats::F32);
        for (formats, most) in CacheFormats::ALL
            .into_iter()
            .zip([0.0, 3e-3, 4e-2, 4e-1, 3e-1])
            .skip(1)
        {
            let got = scores(formats);
            let (whole, after) = (worst(&got.0, &wanted.0), worst(&got.1, &wanted.1));
            println!(
                "{} {formats}: {whole:.1e} whole, {after:.1e} after",
                device.info().id
            );
            let first = if formats == CacheFormats::F16 {
                most
            } else {
                1e-5
            };
            assert!(
                whole <= first && after <= most && after > most / 1e3,
                "{} {formats}: {whole} whole, {after} after",
                device.info().id
            );
        }
    }
}

/// Texts of several lengths, one beyond a part, that continue, pause and are truncated side by
/// side: each has the same scores as alone.
#[test]
fn texts_side_by_side_have_the_scores_of_each_alone() {
    let tokens = prompt(330, 512);
    let texts = [
        &tokens[..5],
        &tokens[20..110],
        &tokens[40..41],
        &tokens[10..310],
    ];
    // The next tokens of each text; the second pauses once, the last until the end.
    let more = [
        [&tokens[5..6], &[], &tokens[41..60], &tokens[310..311]],
        [&tokens[6..9], &tokens[110..140], &tokens[60..61], &[]],
    ];
    for device in devices() {
        for formats in CacheFormats::ALL {
            let open = || Decoder::new(&checkpoint(), &device, 400, formats, None).expect("opens");
            let (mut beside, mut alone) = (
                open().with_texts(4).expect("texts"),
                [(); 4].map(|()| open()),
            );
            beside.prepare(&texts.map(<[u32]>::len)).expect("compiles");
            for (step, given) in [texts, more[0], more[1]].into_iter().enumerate() {
                let scores = beside.feed_each(&given).expect("runs").to_vec();
                for (text, (decoder, given)) in alone
                    .iter_mut()
                    .zip(given)
                    .enumerate()
                    .filter(|(_, (_, given))| !given.is_empty())
                {
                    let name = format!(
                        "{formats} on {}, text {text} at step {step}",
                        device.info().id
                    );
                    assert_near(
                        &scores[text * 512..][..512],
                        decoder.feed(given).expect("runs"),
                        &name,
                    );
                    assert_eq!(beside.len_of(text), decoder.len(), "{name}");
                }
            }
            // A fork has every context; rejected tokens are added to none.
            let mut fork = beside.fork().expect("forks");
            let lens = [0, 1, 2, 3].map(|text| beside.len_of(text));
            for (given, message) in [
                (
                    [&tokens[..1], &[], &[512], &[]],
                    "text 3: token 512; the model has 512",
                ),
                (
                    [&tokens[..1], &[], &[], &tokens[..101]],
                    "text 4: 301 + 101 tokens; the context has room for 400",
                ),
                ([&[]; 4], "no tokens to run; one at least is needed"),
            ] {
                assert_eq!(
                    beside.feed_each(&given).expect_err(message).to_string(),
                    message
                );
            }
            assert_eq!(
                beside.feed(&[1]).expect_err("several").to_string(),
                "texts: 1 given, the decoder has 4"
            );
            assert_eq!([0, 1, 2, 3].map(|text| beside.len_of(text)), lens);
            beside.truncate(70);
            alone.iter_mut().for_each(|decoder| decoder.truncate(70));
            let given = [&tokens[..2]; 4];
            let scores = beside.feed_each(&given).expect("runs").to_vec();
            for (text, decoder) in alone.iter_mut().enumerate() {
                let name = format!("{formats} on {}, text {text} cut back", device.info().id);
                assert_near(
                    &scores[text * 512..][..512],
                    decoder.feed(given[text]).expect("runs"),
                    &name,
                );
            }
            assert_eq!([0, 1, 2, 3].map(|text| fork.len_of(text)), lens);
            fork.feed_each(&given).expect("runs");
        }
    }
    assert_eq!(
        Decoder::open(&sample(), &devices()[0], 16)
            .expect("opens")
            .with_texts(0)
            .expect_err("none")
            .to_string(),
        "a decoder of 0 texts"
    );
}

/// Each text ends for its own reason, and draws from its own seed.
#[test]
fn texts_are_generated_side_by_side_as_each_alone() {
    let device = Device::open("cpu").expect("cpu");
    let tokens = Tokens::read(&sample(), None).expect("reads");
    let prompts = ["the small cat", "a", "one two three four"]
        .map(|text| tokens.encode(text).expect("encodes"));
    let capacity = prompts[2].len() + 25;
    let warm = SamplingParams {
        temperature: 0.9,
        top_k: 50,
        repetition_penalty: 1.1,
        seed: 9,
        ..SamplingParams::default()
    };
    for sampling in [SamplingParams::default(), warm] {
        let alone = |index: usize, end: Vec<u32>| {
            let sampling = SamplingParams {
                seed: sampling.seed + index as u64,
                ..sampling
            };
            let mut decoder = Decoder::open(&sample(), &device, capacity).expect("opens");
            let options = GenerateOptions {
                max_new_tokens: 30,
                sampling,
                end,
                ..GenerateOptions::default()
            };
            generate(
                &mut decoder,
                Some(&tokens),
                &prompts[index],
                &options,
                |_| Ok(ControlFlow::Continue(())),
            )
            .expect("runs")
        };
        // The tenth token of the first text ends any.
        let end = vec![alone(0, Vec::new()).tokens[9]];
        let mut decoder = Decoder::open(&sample(), &device, capacity)
            .expect("opens")
            .with_texts(3)
            .expect("texts");
        let (mut shown, options) = (
            vec![String::new(); 3],
            GenerateOptions {
                max_new_tokens: 30,
                sampling,
                end: end.clone(),
                ..GenerateOptions::default()
            },
        );
        let given: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let made = generate_each(
            &mut decoder,
            Some(&tokens),
            &given,
            &options,
            |index, text| {
                shown[index] += text;
                Ok(ControlFlow::Continue(()))
            },
        );
        let made = made.expect("runs");
        for (index, (made, shown)) in made.iter().zip(shown).enumerate() {
            let wanted = alone(index, end.clone());
            assert_eq!(
                (&made.tokens, &made.text, &made.end, made.decoded),
                (&wanted.tokens, &wanted.text, &wanted.end, wanted.decoded),
                "{index}"
            );
            assert_eq!(Some(shown), made.text);
        }
        assert!(made[0].end == FinishReason::Token(end[0]) && made[0].tokens.len() <= 9);
        // A text that has no room left stops, the others continue.
        assert!(made[2].end == FinishReason::Context || made[2].end == FinishReason::Token(end[0]));
        assert!(
            made.iter()
                .all(|text| text.prefill_s == made[0].prefill_s && text.decode_s > 0.0)
        );
    }
}

/// A fork continues like its decoder, and neither is affected by the other's tokens.
#[test]
fn a_fork_has_the_context_and_keeps_it_to_itself() {
    let tokens = prompt(120, 512);
    for device in devices() {
        for formats in [CacheFormats::F32, CacheFormats::Q8] {
            let fed = |parts: [&[u32]; 2]| {
                let mut decoder =
                    Decoder::new(&checkpoint(), &device, 256, formats, None).expect("opens");
                parts
                    .map(|part| decoder.feed(part).expect("runs").to_vec())
                    .to_vec()
            };
            let mut decoder =
                Decoder::new(&checkpoint(), &device, 256, formats, None).expect("opens");
            decoder.feed(&tokens[..70]).expect("runs");
            let mut fork = decoder.fork().expect("forks");
            assert_eq!((fork.len(), fork.capacity()), (70, 256));
            let left = decoder.feed(&tokens[70..80]).expect("runs").to_vec();
            let right = fork.feed(&tokens[90..100]).expect("runs").to_vec();
            let name = format!("{formats} on {}", device.info().id);
            assert_eq!(left, fed([&tokens[..70], &tokens[70..80]])[1], "{name}");
            assert_eq!(
                right,
                fed([&tokens[..70], &tokens[90..100]])[1],
                "{name}, the fork"
            );
            // A fork of a decoder that has not run yet is empty.
            let mut empty =
                Decoder::new(&checkpoint(), &device, 256, formats, None).expect("opens");
            let mut fork = empty.fork().expect("forks");
            assert!(fork.is_empty());
            assert_eq!(
                fork.feed(&tokens[..70]).expect("runs").to_vec(),
                fed([&tokens[..70], &tokens[..1]])[0],
                "{name}, from nothing"
            );
        }
    }
}

/// Forks share weights: each may be fed from its own task, all concurrently.
#[test]
fn forks_are_fed_side_by_side() {
    use rayon::prelude::*;
    let tokens = prompt(120, 512);
    let parts: Vec<&[u32]> = tokens[40..].chunks(20).collect();
    let fed = |decoder: &mut Decoder, part: &[u32]| -> Vec<Vec<f32>> {
        part.chunks(5)
            .map(|some| decoder.feed(some).expect("runs").to_vec())
            .collect()
    };
    for device in devices() {
        let mut decoder =
            Decoder::new(&checkpoint(), &device, 256, CacheFormats::F32, None).expect("opens");
        decoder.feed(&tokens[..40]).expect("runs");
        let mut forks = || {
            parts
                .iter()
                .map(|_| decoder.fork().expect("forks"))
                .collect::<Vec<Decoder>>()
        };
        let wanted: Vec<_> = forks()
            .iter_mut()
            .zip(&parts)
            .map(|(fork, part)| fed(fork, part))
            .collect();
        let made: Vec<_> = forks()
            .par_iter_mut()
            .zip(&parts)
            .map(|(fork, part)| fed(fork, part))
            .collect();
        assert_eq!(made, wanted, "{}", device.info().id);
    }
}

/// Truncation goes back to whole windows of codes: the continuation has the bits of a text whose
/// part began there.
#[test]
fn a_context_of_codes_is_cut_back_to_what_it_was() {
    let tokens = prompt(160, 512);
    for device in devices() {
        for formats in CacheFormats::ALL {
            let open = || Decoder::new(&checkpoint(), &device, 256, formats, None).expect("opens");
            let begun = |len: usize| {
                let mut decoder = open();
                decoder.feed(&tokens[..64]).expect("runs");
                decoder.feed(&tokens[64..len]).expect("runs").to_vec()
            };
            let name = format!("{formats} on {}", device.info().id);
            // Back into codes, in two steps, and continue from there; f32 and f16 go back to any
            // token and need not run some again.
            let mut decoder = open();
            decoder.feed(&tokens[..64]).expect("runs");
            decoder.feed(&tokens[64..160]).expect("runs");
            decoder.truncate(120);
            decoder.truncate(100);
            assert_eq!(decoder.len(), 100, "{name}");
            let got = decoder.feed(&tokens[100..110]).expect("runs").to_vec();
            assert_eq!(decoder.len(), 110, "{name}");
            if formats.each()[0].is_quantized() {
                assert_eq!(got, begun(110), "{name}");
            } else {
                assert_near(&got, &begun(110), &name);
            }
            // Back within the last window: nothing runs again.
            let mut decoder = open();
            decoder.feed(&tokens[..64]).expect("runs");
            decoder.feed(&tokens[64..90]).expect("runs");
            decoder.feed(&tokens[90..120]).expect("runs");
            decoder.truncate(90);
            let again = decoder.feed(&tokens[90..100]).expect("runs").to_vec();
            let mut straight = open();
            for range in [0..64, 64..90, 90..100] {
                straight.feed(&tokens[range]).expect("runs");
            }
            straight.truncate(90);
            assert_eq!(
                again,
                straight.feed(&tokens[90..100]).expect("runs").to_vec(),
                "{name}"
            );
            // Back to an empty context.
            decoder.truncate(3);
            decoder.truncate(0);
            assert!(decoder.is_empty(), "{name}");
            decoder.feed(&tokens[..64]).expect("runs");
            assert_eq!(
                decoder.feed(&tokens[64..90]).expect("runs"),
                begun(90),
                "{name}"
            );
        }
    }
}

#[test]
fn generation_ends_for_each_reason_and_shows_what_it_gives() {
    let device = Device::open("cpu").expect("cpu");
    let tokens = Tokens::read(&sample(), None).expect("reads");
    assert_eq!(checkpoint().end_tokens().expect("reads"), [0]);
    let prompt = tokens.encode("the small cat").expect("encodes");
    let run = |options: GenerateOptions, capacity: usize| {
        let mut decoder = Decoder::open(&sample(), &device, capacity).expect("opens");
        let mut shown = Vec::new();
        let made = generate(&mut decoder, Some(&tokens), &prompt, &options, |text| {
            shown.push(text.to_owned());
            Ok(ControlFlow::Continue(()))
        });
        let made = made.expect("runs");
        assert_eq!(Some(shown.concat()), made.text, "{options:?}");
        (made, shown.len())
    };
    let options = GenerateOptions {
        max_new_tokens: 30,
        ..GenerateOptions::default()
    };
    let (whole, pieces) = run(options.clone(), 512);
    let text = whole.text.clone().expect("a tokenizer");
    assert_eq!(
        (whole.tokens.len(), whole.decoded, whole.end, whole.prompt),
        (30, 29, FinishReason::Length, prompt.len())
    );
    assert_eq!(text, tokens.decode(&whole.tokens).expect("decodes"));
    assert!(pieces > 15, "text comes as it is made: {pieces} pieces");
    // Broken off after ten pieces: what was generated until then is returned.
    let (mut decoder, mut left) = (Decoder::open(&sample(), &device, 512).expect("opens"), 10);
    let made = generate(&mut decoder, Some(&tokens), &prompt, &options, |_| {
        left -= 1;
        Ok(if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    });
    let made = made.expect("runs");
    assert!(
        made.end == FinishReason::Cancelled && (10..30).contains(&made.tokens.len()),
        "{made:?}"
    );
    assert!(
        text.starts_with(made.text.as_deref().expect("a tokenizer"))
            && whole.tokens.starts_with(&made.tokens)
    );

    // A text to stop at that begins in one token and ends in another.
    let letters: Vec<char> = text.chars().collect();
    let stop: String = letters[20..24].iter().collect();
    let (stopped, _) = run(
        GenerateOptions {
            stop_sequences: vec!["nowhere at all".to_owned(), stop.clone()],
            ..options.clone()
        },
        512,
    );
    assert_eq!(
        stopped.text.as_deref(),
        text.find(&stop).map(|at| &text[..at])
    );
    assert_eq!(stopped.end, FinishReason::Text(stop));

    let last = whole.tokens[10];
    let first = whole
        .tokens
        .iter()
        .position(|token| *token == last)
        .expect("there");
    let (ended, _) = run(
        GenerateOptions {
            end: vec![last],
            ..options.clone()
        },
        512,
    );
    assert_eq!(
        (ended.end, &ended.tokens[..]),
        (FinishReason::Token(last), &whole.tokens[..first])
    );

    let (full, _) = run(options.clone(), prompt.len() + 4);
    assert_eq!(
        (full.end, full.tokens.len(), full.decoded),
        (FinishReason::Context, 5, 4)
    );
    let (none, _) = run(
        GenerateOptions {
            max_new_tokens: 0,
            ..options
        },
        512,
    );
    assert_eq!((none.tokens.len(), none.text.as_deref()), (0, Some("")));
}

type Change = (&'static str, &'static str, &'static str, &'static str);

/// Each unsupported setting and each missing tensor, by its name.
#[test]
fn what_is_not_done_is_refused_with_its_name() {
    let cases: &[Change] = &[
        ("llama", "hidden_act", r#""mish""#, "hidden_act \"mish\""),
        (
            "llama",
            "rope_parameters",
            r#"{"rope_type": "llama3", "factor": 8.0}"#,
            "rope_parameters of type \"llama3\"; \"default\" is supported",
        ),
        (
            "llama",
            "rope_scaling",
            r#"{"type": "linear", "factor": 2.0}"#,
            "rope_scaling of type \"linear\"; \"default\" is supported",
        ),
        (
            "llama",
            "rope_parameters",
            r#"{"full_attention": {"rope_theta": 1e4}}"#,
            "rope_parameters without rope_theta",
        ),
        ("llama", "mlp_bias", "true", "mlp_bias true"),
        (
            "llama",
            "quantization_config",
            r#"{"bits": 4}"#,
            "quantization_config",
        ),
        (
            "llama",
            "num_key_value_heads",
            "3",
            "sizes that no model has",
        ),
        (
            "llama",
            "num_hidden_layers",
            "3",
            "no tensor model.layers.2.input_layernorm.weight, which has shape [32]",
        ),
        (
            "llama",
            "intermediate_size",
            "40",
            "tensor model.layers.0.mlp.gate_proj.weight is [48, 32], [40, 32] is needed",
        ),
        (
            "llama",
            "attention_bias",
            "true",
            "no tensor model.layers.0.self_attn.q_proj.bias",
        ),
        ("llama", "hidden_size", "null", "invalid type: null"),
        (
            "qwen2",
            "use_sliding_window",
            "true",
            "use_sliding_window true",
        ),
        (
            "qwen2",
            "layer_types",
            r#"["full_attention", "sliding_attention"]"#,
            "layer_types \"sliding_attention\"",
        ),
        (
            "qwen2",
            "tie_word_embeddings",
            "false",
            "no tensor lm_head.weight, which has shape [96, 32]",
        ),
        (
            "gpt2",
            "activation_function",
            r#""mish""#,
            "activation_function \"mish\"",
        ),
        (
            "gpt2",
            "scale_attn_by_inverse_layer_idx",
            "true",
            "scale_attn_by_inverse_layer_idx true",
        ),
        ("gpt2", "n_head", "5", "n_embd 32 in 5 heads"),
        ("gpt2", "n_head", "0", "n_embd 32 in 0 heads"),
        (
            "gpt2",
            "n_positions",
            "64",
            "tensor transformer.wpe.weight is [128, 32], [64, 32] is needed",
        ),
        (
            "gpt2",
            "model_type",
            r#""mamba""#,
            "model_type \"mamba\" is not supported; encoders: \"bert\"; decoders: \"gpt2\", \"llama\", \"qwen2\", \"qwen3\"",
        ),
        (
            "gpt2",
            "model_type",
            r#""bert""#,
            "model_type \"bert\" is that of an encoder, which `tectum embed` runs",
        ),
        (
            "gpt2",
            "model_type",
            "null",
            "model_type is missing; known: encoders: ",
        ),
    ];
    let device = Device::open("null").expect("null");
    let golden = golden();
    for (index, (family, key, value, message)) in cases.iter().enumerate() {
        let (place, row) = (Place::new(&format!("refused-{index}")), &golden[*family]);
        write_model(&place, family, row);
        assert!(
            Decoder::open(&place.0, &device, 16).is_ok(),
            "{family} as it is"
        );
        let mut config = row.config.clone();
        config[*key] = serde_json::from_str(value).expect("JSON");
        place.write("config.json", config.to_string());
        let error = Decoder::open(&place.0, &device, 16)
            .expect_err(message)
            .to_string();
        assert!(error.contains(message), "{key} {value}: {error}");
    }
    let mut decoder =
        Decoder::open(&sample(), &Device::open("cpu").expect("cpu"), 10).expect("opens");
    let mut message = |tokens: &[u32]| decoder.feed(tokens).expect_err("refused").to_string();
    assert_eq!(message(&[]), "no tokens to run; one at least is needed");
    assert_eq!(message(&[1, 512]), "token 512; the model has 512");
    assert_eq!(
        message(&[1; 11]),
        "the prompt has 11 tokens; the context has room for 10"
    );
    let mut whole =
        Decoder::open(&sample(), &Device::open("cpu").expect("cpu"), usize::MAX).expect("opens");
    assert_eq!(
        whole.feed(&[1; 513]).expect_err("refused").to_string(),
        "the prompt has 513 tokens; the model takes 512"
    );
}

#[test]
fn loading_reports_its_bytes_and_is_broken_off() {
    let (device, model) = (Device::open("cpu").expect("cpu"), checkpoint());
    let load = |most: usize| {
        let mut seen = Vec::new();
        let mut watch = |progress: tectum::WorkProgress<'_>| {
            seen.push((progress.done, progress.total));
            if seen.len() == most {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        };
        let loaded =
            Decoder::load(&model, &device, 16, CacheFormats::F32, None, &mut watch).map(drop);
        (loaded, seen)
    };
    let (loaded, seen) = load(usize::MAX);
    loaded.expect("opens");
    assert!(
        seen.len() > 3
            && seen.windows(2).all(|pair| pair[0].0 < pair[1].0)
            && seen.last().is_some_and(|(done, total)| done == total),
        "{seen:?}"
    );
    let (broken, part) = load(3);
    let error = broken.expect_err("broken off");
    assert!(
        error.kind() == tectum::ErrorKind::Cancelled
            && error
                .to_string()
                .starts_with("loading weights: broken off after "),
        "{error}"
    );
    assert_eq!(part, seen[..3]);
}

/// A tokenizer of the kind of SentencePiece, for the 512 tokens of the sample: `<s>` begins a text,
/// and a space before a word is a part of the word, except before the first.
fn sentence_piece(place: &Place) -> Tokens {
    let mut vocabulary: BTreeMap<String, u32> =
        BTreeMap::from([("<unk>", 0), ("<s>", 1), ("</s>", 2)].map(|(name, id)| (name.into(), id)));
    vocabulary.extend((0..256).map(|byte| (format!("<0x{byte:02X}>"), 3 + byte)));
    vocabulary.extend((259..512).map(|id| (format!("▁w{id}"), id)));
    let special = |id: u32, name: &str| serde_json::json!({"id": id, "content": name, "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true});
    let tokenizer = serde_json::json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": [special(0, "<unk>"), special(1, "<s>"), special(2, "</s>")],
        "normalizer": {"type": "Sequence", "normalizers": [
            {"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        ]},
        "pre_tokenizer": null,
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}}
        },
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
            {"type": "ByteFallback"},
            {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}
        ]},
        "model": {"type": "BPE", "dropout": null, "unk_token": "<unk>", "continuing_subword_prefix": null, "end_of_word_suffix": null,
                  "fuse_unk": true, "byte_fallback": true, "vocab": vocabulary, "merges": []}
    });
    place.write("tokenizer.json", tokenizer.to_string());
    Tokens::read(&place.0, None).expect("reads")
}

/// Generates after each prompt in turn, in one context, and returns the last generation.
fn generate_in_turn(
    decoder: &mut Decoder,
    tokens: Option<&Tokens>,
    prompts: &[&[u32]],
    options: &GenerateOptions,
) -> Generation {
    let mut made = prompts.iter().map(|prompt| {
        generate(decoder, tokens, prompt, options, |_| {
            Ok(ControlFlow::Continue(()))
        })
        .expect("runs")
    });
    made.by_ref().last().expect("a prompt")
}

/// Prompt and text together are the text of prompt and tokens together, however the stream divides
/// them: the first word keeps the space before it.
#[test]
fn the_first_word_keeps_the_space_before_it() {
    let place = Place::new("space");
    let tokens = sentence_piece(&place);
    let device = Device::open("cpu").expect("cpu");
    let mut decoder = Decoder::open(&sample(), &device, 256).expect("opens");
    let mut words = 0;
    for first in 300..340u32 {
        let special = [&[300u32, 301][..], &[1; 20]].concat();
        for prompt in [&[1, first][..], &[first], &[1], &special] {
            decoder.truncate(0);
            let options = GenerateOptions {
                max_new_tokens: 2,
                ..GenerateOptions::default()
            };
            let mut shown = String::new();
            let made = generate(&mut decoder, Some(&tokens), prompt, &options, |text| {
                shown += text;
                Ok(ControlFlow::Continue(()))
            })
            .expect("runs");
            let text = made.text.expect("a tokenizer");
            let whole = [prompt, &made.tokens].concat();
            // Incomplete characters are not compared: their bytes may be complete in the whole.
            if made.tokens.iter().all(|token| *token >= 259) {
                let [before, whole] =
                    [prompt, &whole].map(|tokens_of| tokens.decode(tokens_of).expect("decodes"));
                assert_eq!(
                    before.clone() + &text,
                    whole,
                    "{prompt:?}, {:?}",
                    made.tokens
                );
                words += usize::from(!before.is_empty() && text.starts_with(" w"));
            }
            assert_eq!(shown, text);
        }
    }
    assert!(words > 10, "{words} texts begin with a word");
}

/// A context continues as one text: prompt, generated tokens, next prompt; for every reason to end,
/// and with every penalty.
#[test]
fn a_context_continues_after_all_generated_tokens() {
    let device = Device::open("cpu").expect("cpu");
    let tokens = Tokens::read(&sample(), None).expect("reads");
    let (first, next) = ([47u32, 78, 336, 221], [5u32, 6, 7]);
    let plain = GenerateOptions {
        max_new_tokens: 8,
        ..GenerateOptions::default()
    };
    let penalty = GenerateOptions {
        sampling: SamplingParams {
            repetition_penalty: 3.0,
            ..SamplingParams::default()
        },
        ..plain.clone()
    };
    for formats in [CacheFormats::F32, CacheFormats::Q8] {
        let open = || Decoder::new(&checkpoint(), &device, 64, formats, None).expect("opens");
        for options in [&plain, &penalty] {
            let begun = generate_in_turn(&mut open(), Some(&tokens), &[&first], options);
            let mut decoder = open();
            let made = generate_in_turn(&mut decoder, Some(&tokens), &[&first, &next], options);
            assert_eq!((begun.tokens.len(), made.prompt), (8, 3));
            let whole = [&first[..], &begun.tokens, &next].concat();
            let expected = generate_in_turn(&mut open(), Some(&tokens), &[&whole], options);
            assert_eq!(made.tokens, expected.tokens, "{formats}, {options:?}");
            assert_eq!(made.text, expected.text);
            assert_eq!(decoder.len(), whole.len() + 8);
        }
    }
    let begun = generate_in_turn(
        &mut Decoder::open(&sample(), &device, 64).expect("opens"),
        Some(&tokens),
        &[&first],
        &plain,
    );
    let text = begun.text.expect("a tokenizer");
    // A token that ends the text is not a part of it; one that completes a text to stop at is.
    let ends = [
        GenerateOptions {
            end: vec![begun.tokens[5]],
            ..plain.clone()
        },
        GenerateOptions {
            stop_sequences: vec![text.chars().skip(3).take(3).collect()],
            ..plain.clone()
        },
    ];
    for options in ends {
        let mut decoder = Decoder::open(&sample(), &device, 64).expect("opens");
        let made = generate_in_turn(&mut decoder, Some(&tokens), &[&first], &options);
        assert!(
            matches!(made.end, FinishReason::Token(_) | FinishReason::Text(_)),
            "{:?}",
            made.end
        );
        let whole = [&first[..], &made.tokens, &next].concat();
        let continued = generate_in_turn(&mut decoder, Some(&tokens), &[&next], &plain);
        let mut fresh = Decoder::open(&sample(), &device, 64).expect("opens");
        let expected = generate_in_turn(&mut fresh, Some(&tokens), &[&whole], &plain);
        assert_eq!(continued.tokens, expected.tokens, "{options:?}");
    }
    // Broken off, and two texts of which one has ended before the other.
    let mut decoder = Decoder::open(&sample(), &device, 64).expect("opens");
    let mut left = 3;
    let broken = generate(&mut decoder, None, &first, &plain, |_| {
        left -= 1;
        Ok(if left == 0 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        })
    })
    .expect("runs");
    assert_eq!(broken.tokens, begun.tokens[..3]);
    let mut both = Decoder::open(&sample(), &device, 64)
        .expect("opens")
        .with_texts(2)
        .expect("texts");
    let end = GenerateOptions {
        end: vec![begun.tokens[5]],
        ..plain.clone()
    };
    let show = |_: usize, _: &str| Ok(ControlFlow::Continue(()));
    let other = [9u32, 10];
    let begun = generate_each(&mut both, None, &[&first, &other], &end, show).expect("runs");
    let continued = generate_each(&mut both, None, &[&next, &next], &plain, show).expect("runs");
    for (index, prompt) in [&first[..], &other].into_iter().enumerate() {
        let whole = [prompt, &begun[index].tokens, &next].concat();
        let mut fresh = Decoder::open(&sample(), &device, 64).expect("opens");
        let expected = generate_in_turn(&mut fresh, None, &[&whole], &plain);
        assert_eq!(continued[index].tokens, expected.tokens, "text {index}");
    }
    let whole = [&first[..], &broken.tokens, &next].concat();
    let expected = generate_in_turn(
        &mut Decoder::open(&sample(), &device, 64).expect("opens"),
        None,
        &[&whole],
        &plain,
    );
    let continued = generate_in_turn(&mut decoder, None, &[&next], &plain);
    assert_eq!(continued.tokens, expected.tokens, "broken off");
}

/// A text that continues another has no second beginning token.
#[test]
fn a_continued_text_has_no_special_tokens_around_it() {
    let place = Place::new("continued");
    let tokens = sentence_piece(&place);
    assert_eq!(tokens.encode("w300 w301").expect("encodes")[0], 1);
    let continued = tokens.encode_continued("w300 w301").expect("encodes");
    assert_eq!(continued, tokens.encode("w300 w301").expect("encodes")[1..]);
    assert_eq!(tokens.describe(300), "300 (\"▁w300\")");
    assert_eq!(tokens.describe(512), "512");
}

/// The sample with a tensor `lm_head.weight`: the table of tokens, changed by a function.
fn with_head(place: &Place, change: impl Fn(usize, f32) -> f32) -> Vec<f32> {
    let weights = SafetensorsWeights::open(&sample()).expect("there");
    let (mut header, mut data, mut head) = (serde_json::Map::new(), Vec::new(), Vec::new());
    let names: Vec<String> = weights.entries().map(|(name, _)| name.to_owned()).collect();
    for name in names.iter().map(String::as_str).chain(["lm_head.weight"]) {
        let table = "model.embed_tokens.weight";
        let source = if name == "lm_head.weight" {
            table
        } else {
            name
        };
        let (_, entry) = weights
            .entries()
            .find(|(other, _)| *other == source)
            .expect("there");
        let mut values = vec![0.0; entry.shape.iter().product()];
        weights
            .read(source, &entry.shape, &mut values)
            .expect("reads");
        if name == "lm_head.weight" {
            values = values
                .into_iter()
                .enumerate()
                .map(|(index, value)| change(index, value))
                .collect();
            head = values.clone();
        }
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        header.insert(
            name.to_owned(),
            serde_json::json!({"dtype": "F32", "shape": entry.shape, "data_offsets": [start, data.len()]}),
        );
    }
    let header = serde_json::Value::from(header).to_string();
    let len = (header.len() as u64).to_le_bytes();
    place.write(
        "model.safetensors",
        [&len[..], header.as_bytes(), &data].concat(),
    );
    let config = std::fs::read_to_string(sample().join("config.json")).expect("there");
    assert!(config.contains(r#""tie_word_embeddings": true"#));
    place.write("config.json", config);
    head
}

/// transformers computes scores with `lm_head.weight` if the file has one that differs from the
/// table, whatever `tie_word_embeddings` says.
#[test]
fn a_head_that_differs_from_the_table_gives_the_scores() {
    let place = Place::new("tied");
    let device = Device::open("cpu").expect("cpu");
    let prompt = prompt(12, 512);
    // Rows of the table in the opposite order: token t has the score of token 511 − t.
    let table = with_head(&place, |_, value| value);
    let tied = Decoder::open(&place.0, &device, 64);
    let scores = tied.expect("opens").feed(&prompt).expect("runs").to_vec();
    let model = Checkpoint::open(&place.0).expect("opens");
    assert!(model.sizes().tied_embeddings, "equal tensors are one");

    with_head(&place, |index, _| {
        table[(511 - index / 64) * 64 + index % 64]
    });
    let model = Checkpoint::open(&place.0).expect("opens");
    assert!(!model.sizes().tied_embeddings);
    let mut decoder = Decoder::open(&place.0, &device, 64).expect("opens");
    assert!(decoder.tensors().any(|name| name == "lm_head.weight"));
    let reversed: Vec<f32> = scores.iter().rev().copied().collect();
    assert_near(
        decoder.feed(&prompt).expect("runs"),
        &reversed,
        "reversed rows",
    );
}

/// Names, shapes and types are checked when a model is opened, and the graph of layers that the files
/// lack is not built.
#[test]
fn missing_layers_are_refused_when_a_model_is_opened() {
    let golden = golden();
    for (family, key, message) in [
        ("gpt2", "n_layer", "no tensor transformer.h.2.ln_1.weight"),
        (
            "llama",
            "num_hidden_layers",
            "no tensor model.layers.2.input_layernorm.weight",
        ),
        (
            "qwen2",
            "num_hidden_layers",
            "no tensor model.layers.2.input_layernorm.weight",
        ),
        (
            "qwen3",
            "num_hidden_layers",
            "no tensor model.layers.2.input_layernorm.weight",
        ),
    ] {
        let (place, row) = (Place::new(&format!("layers-{family}")), &golden[family]);
        write_model(&place, family, row);
        let model = Checkpoint::open(&place.0).expect("opens");
        assert_eq!(model.sizes().layers, 2, "{family}");
        let mut config = row.config.clone();
        config[key] = serde_json::json!(1000);
        place.write("config.json", config.to_string());
        let error = Checkpoint::open(&place.0).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
        assert!(Model::open(&place.0).is_err());
    }
    let place = Place::new("layers-bert");
    let sample = root().join("crates/tectum-transformer/models/sample-encoder");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        place.write(file, std::fs::read(sample.join(file)).expect("tracked"));
    }
    let config = std::fs::read_to_string(sample.join("config.json")).expect("there");
    for (from, to, message) in [
        (
            r#""num_hidden_layers": 2"#,
            r#""num_hidden_layers": 1000"#,
            "no tensor encoder.layer.2.attention.self.query.weight, which has shape [64, 64]",
        ),
        (
            r#""intermediate_size": 128"#,
            r#""intermediate_size": 96"#,
            "tensor encoder.layer.0.intermediate.dense.weight is [128, 64], [96, 64] is needed",
        ),
    ] {
        assert!(config.contains(from));
        place.write("config.json", config.replace(from, to));
        let error = Encoder::read(&place.0).expect_err(message).to_string();
        assert!(error.contains(message), "{error}");
    }
}

/// Only a token that is outside the table is refused, by its name.
#[test]
fn a_prompt_with_a_token_outside_the_table_is_refused_by_its_name() {
    let place = Place::new("outside");
    let tokenizer = std::fs::read(sample().join("tokenizer.json")).expect("there");
    let mut tokenizer: serde_json::Value = serde_json::from_slice(&tokenizer).expect("JSON");
    let added = tokenizer["added_tokens"].as_array_mut().expect("a list");
    added.push(serde_json::json!({"id": 512, "content": "<|new|>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}));
    place.write("tokenizer.json", tokenizer.to_string());
    let tokens = Tokens::read(&place.0, None).expect("reads");
    assert_eq!(tokens.len(), 513);
    let device = Device::open("cpu").expect("cpu");
    let mut decoder = Decoder::open(&sample(), &device, 64)
        .expect("opens")
        .with_texts(2)
        .expect("texts");
    let options = GenerateOptions {
        max_new_tokens: 2,
        ..GenerateOptions::default()
    };
    let mut run = |texts: [&str; 2]| {
        let prompts = texts.map(|text| tokens.encode(text).expect("encodes"));
        let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let show = |_: usize, _: &str| Ok(ControlFlow::Continue(()));
        generate_each(&mut decoder, Some(&tokens), &prompts, &options, show)
            .map_err(|error| error.to_string())
    };
    assert!(run(["the small cat", "a"]).is_ok());
    assert_eq!(
        run(["the small cat", "a<|new|>"]).expect_err("outside"),
        "text 2: token 512 (\"<|new|>\"); the model has 512"
    );
}
