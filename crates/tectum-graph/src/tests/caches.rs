//! States and attention over them: contents across runs, the text form, refusals.

use tectum::kernel::random::{philox, uniform};
use tectum::{CacheFormat, CacheFormats, DType, Device, PlanBuilder, Result};

use crate::{Graph, GraphBuilder, Heads, Node, Tensor};

/// Two items of three tokens, four heads, two per pair of keys and values, in one product as in
/// decoders.
const TEXT: &str = "%0 = input x [2, 3, 6]\n%1 = indices spans [2, 2]\n%2 = parameter w [32, 6]\n%3 = state keys [2, 8, 8]\n\
                    %4 = state values [2, 8, 8]\n%5 = matmul(%0, %2ᵀ) [2, 3, 32]\n%6 = slice(%5, axis 2, from 0) [2, 3, 16]\n\
                    %7 = slice(%5, axis 2, from 16) [2, 3, 8]\n%8 = slice(%5, axis 2, from 24) [2, 3, 8]\n\
                    %9 = attention_cached(%6, %7, %8, %3, %4, %1, heads 4, kv 2, width 4, scale 0.5, causal) [2, 3, 16]\noutput y %9\n";

#[test]
fn attention_over_caches_reads_slices_where_they_lie() {
    let graph = Graph::parse(TEXT).expect("read");
    assert_eq!(graph.describe(), TEXT);
    let fused = graph.fuse_slices().prune().describe();
    let line = "%9 = attention_cached(%5, %5@16, %5@24, %3, %4, %1, heads 4, kv 2, width 4, scale 0.5, causal) [2, 3, 16]\n";
    assert!(fused.contains(line) && !fused.contains("slice"), "{fused}");
    assert_eq!(Graph::parse(&fused).expect("read").describe(), fused);
    assert_eq!(
        graph.states().map(|(name, ..)| name).collect::<Vec<_>>(),
        ["keys", "values"]
    );
}

fn floats(key: u32, count: usize) -> Vec<f32> {
    (0..count as u32)
        .map(|index| 2.0 * uniform(philox([index, 0, 0, 0], [key, 0])[0]) - 1.0)
        .collect()
}

fn tensor(graph: &Graph, node: Node, data: &[f32]) -> (Node, Tensor) {
    (
        node,
        Tensor::new(
            graph.shape(node).expect("there"),
            data.iter().copied().map(f64::from).collect(),
        )
        .expect("fits"),
    )
}

/// Runs whose items differ in length and keep as much as fits: after each, the device agrees with
/// the evaluator fed with the expected cache contents.
#[test]
fn what_a_run_keeps_the_next_one_sees() {
    let graph = Graph::parse(TEXT).expect("read");
    let nodes: Vec<Node> = graph
        .inputs()
        .chain(graph.parameters())
        .chain(graph.states())
        .map(|(_, node, _)| node)
        .collect();
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: what a run keeps");
            continue;
        };
        for fused in [false, true] {
            let mut run = if fused {
                graph.compile(&device)
            } else {
                graph.compile_unfused(&device)
            }
            .expect("compiles");
            let w = floats(1, 32 * 6);
            run.set_parameter("w", &w).expect("fits");
            let mut caches = [vec![0.0f32; 2 * 8 * 8], vec![0.0f32; 2 * 8 * 8]];
            let mut kept = [0u32; 2];
            for (step, new) in [[3, 1], [1, 3], [2, 2], [1, 1], [1, 3]]
                .into_iter()
                .enumerate()
            {
                let (x, spans) = (
                    floats(2 + step as u32, 2 * 3 * 6),
                    [kept[0], new[0], kept[1], new[1]],
                );
                run.set_input("x", &x).expect("fits");
                run.set_indices("spans", &spans).expect("fits");
                run.run().expect("runs");
                let spans = spans.map(|word| word as f32);
                let fed = [&x[..], &spans, &w, &caches[0], &caches[1]];
                let feeds: Vec<(Node, Tensor)> = nodes
                    .iter()
                    .zip(fed)
                    .map(|(node, data)| tensor(&graph, *node, data))
                    .collect();
                let wanted = graph.evaluate(&feeds).expect("fed");
                let got = run.output("y").expect("ran");
                for (index, (got, wanted)) in got.iter().zip(wanted[0].data()).enumerate() {
                    assert!(
                        (f64::from(*got) - wanted).abs() < 1e-5,
                        "{id}, fused {fused}, step {step}, element {index}: {got}, not {wanted}"
                    );
                }
                for item in 0..2 {
                    // What has no room is not kept.
                    for t in 0..(new[item] as usize).min(8usize.saturating_sub(kept[item] as usize))
                    {
                        for column in 0..8 {
                            let made = |first: usize| {
                                (0..6)
                                    .map(|i| {
                                        x[(item * 3 + t) * 6 + i] * w[(first + column) * 6 + i]
                                    })
                                    .sum::<f32>()
                            };
                            let at = (item * 8 + kept[item] as usize + t) * 8 + column;
                            (caches[0][at], caches[1][at]) = (made(16), made(24));
                        }
                    }
                    kept[item] += new[item];
                }
            }
            assert_eq!(
                kept,
                [8, 10],
                "one has filled its cache, the other more than that"
            );
        }
    }
}

/// One item of up to 70 tokens a run over caches of 150, in a format each.
fn text_of(formats: CacheFormats) -> String {
    let [keys, values] = formats.each();
    format!(
        "%0 = input x [1, 70, 6]\n%1 = indices spans [1, 2]\n%2 = parameter w [32, 6]\n%3 = state keys {keys} [1, 150, 8]\n\
         %4 = state values {values} [1, 150, 8]\n%5 = matmul(%0, %2ᵀ) [1, 70, 32]\n%6 = slice(%5, axis 2, from 0) [1, 70, 16]\n\
         %7 = slice(%5, axis 2, from 16) [1, 70, 8]\n%8 = slice(%5, axis 2, from 24) [1, 70, 8]\n\
         %9 = attention_cached(%6, %7, %8, %3, %4, %1, heads 4, kv 2, width 4, scale 0.5, causal) [1, 70, 16]\noutput y %9\n"
    )
}

/// The evaluator implements the rules in float64 as a function of the values written to the caches.
/// Eighths are exact in f32, so that device and evaluator round the same numbers.
#[test]
fn caches_of_fewer_bits_are_what_the_evaluator_says() {
    let eighths = |key: u32, count: usize| {
        floats(key, count)
            .into_iter()
            .map(|x| (8.0 * x).round() / 8.0)
            .collect::<Vec<f32>>()
    };
    for formats in CacheFormats::ALL.into_iter().skip(1) {
        let text = text_of(formats);
        let graph = Graph::parse(&text).expect("read");
        assert_eq!(graph.describe(), text);
        assert_eq!(
            Graph::parse(&text_of(CacheFormats::F32).replace(" f32 ", " "))
                .expect("read")
                .with_caches(formats)
                .describe(),
            text
        );
        let nodes: Vec<Node> = graph
            .inputs()
            .chain(graph.parameters())
            .chain(graph.states())
            .map(|(_, node, _)| node)
            .collect();
        for id in ["cpu", "vulkan:0", "cuda:0"] {
            let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
                eprintln!("skipped: {id} is absent: caches of fewer bits");
                continue;
            };
            let mut run = graph.compile(&device).expect("compiles");
            let w = eighths(1, 32 * 6);
            run.set_parameter("w", &w).expect("fits");
            let mut caches = [vec![0.0f32; 150 * 8], vec![0.0f32; 150 * 8]];
            let mut kept = 0;
            let mut differences = Vec::new();
            for (step, new) in [30usize, 40, 66, 3, 20].into_iter().enumerate() {
                let (x, spans) = (eighths(2 + step as u32, 70 * 6), [kept as u32, new as u32]);
                run.set_input("x", &x).expect("fits");
                run.set_indices("spans", &spans).expect("fits");
                run.run().expect("runs");
                let spans = spans.map(|word| word as f32);
                let fed = [&x[..], &spans, &w, &caches[0], &caches[1]];
                let feeds: Vec<(Node, Tensor)> = nodes
                    .iter()
                    .zip(fed)
                    .map(|(node, data)| tensor(&graph, *node, data))
                    .collect();
                let wanted = graph.evaluate(&feeds).expect("fed");
                let full = graph
                    .with_caches(CacheFormats::F32)
                    .evaluate(&feeds)
                    .expect("fed");
                for (index, (got, wanted)) in run
                    .output("y")
                    .expect("ran")
                    .iter()
                    .zip(wanted[0].data())
                    .enumerate()
                {
                    assert!(
                        (f64::from(*got) - wanted).abs() < 1e-5,
                        "{formats} on {id}, step {step}, element {index}: {got}, not {wanted}"
                    );
                }
                differences.push(
                    wanted[0]
                        .data()
                        .iter()
                        .zip(full[0].data())
                        .fold(0.0f64, |most, (a, b)| most.max((a - b).abs())),
                );
                // What has no room is not kept.
                for (t, column) in
                    (0..new.min(150 - kept)).flat_map(|t| (0..8).map(move |column| (t, column)))
                {
                    let made = |first: usize| {
                        (0..6)
                            .map(|i| x[t * 6 + i] * w[(first + column) * 6 + i])
                            .sum::<f32>()
                    };
                    let at = (kept + t) * 8 + column;
                    (caches[0][at], caches[1][at]) = (made(16), made(24));
                }
                kept += new;
            }
            // Halves hold sums of products of eighths exactly; codes do not.
            let least = if formats == CacheFormats::F16 {
                0.0
            } else {
                1e-4
            };
            assert!(
                differences[0] == 0.0 && differences[3] >= least,
                "{formats}: {differences:?}"
            );
        }
    }
}

/// Words are never floats: the type of a state follows from its format.
#[test]
fn a_state_is_fed_with_a_view_of_its_type() {
    for (format, needed, given) in [
        (CacheFormats::F32, "f32", DType::U32),
        (CacheFormats::Q8, "u32", DType::F32),
    ] {
        let graph = Graph::parse(&text_of(format).replace(" f32 ", " ")).expect("read");
        let (_, keys, _) = graph.states().next().expect("there");
        let (len, mut plan) = (
            graph.state_words(keys).expect("bound"),
            PlanBuilder::new("p"),
        );
        assert_eq!(graph.dtype(keys).expect("there").wgsl(), needed);
        let view = plan.state("keys", given, len);
        let message = graph
            .record(&mut plan, &[(keys, view)], &[])
            .expect_err("of another type")
            .to_string();
        assert_eq!(
            message,
            format!(
                "feed of node 3, [1, 150, 8] {needed}: a view of {len} × {} does not fit",
                given.wgsl()
            )
        );
        let mut run = graph
            .compile(&Device::open("cpu").expect("cpu"))
            .expect("compiles");
        let refused = if given == DType::F32 {
            run.set_state("keys", &vec![0.0; len])
        } else {
            run.set_words("keys", &vec![0; len])
        };
        let message = refused.expect_err("of another type").to_string();
        assert_eq!(
            message,
            format!(
                "executable graph: slot keys seen as {needed} is no state of {}",
                given.wgsl()
            )
        );
    }
}

type Mistake = fn(&mut GraphBuilder, [Node; 4]) -> Result<()>;

/// Mistakes on q [1, 3, 8], two caches [1, 9, 8] and spans [1, 2], with the whole message.
#[test]
fn mistakes_with_states_are_named() {
    let heads = || Heads {
        causal: true,
        ..Heads::new(2, 4)
    };
    let cases: &[(Mistake, &str)] = &[
        (
            |g, [_, keys, ..]| g.tanh(keys).map(drop),
            "activate: operand 1 [1, 9, 8] is a state (node 4)",
        ),
        (
            |g, [_, keys, ..]| g.output("y", keys),
            "output y: node 1 is a state (node 4)",
        ),
        (
            |g, _| g.state("keys", [1]).map(drop),
            "state keys: the name is taken (node 4)",
        ),
        (
            |g, [q, keys, _, spans]| {
                let values = g.state_as("short", CacheFormat::Q4, [1, 9, 8])?;
                g.attention_cached(
                    [q; 3],
                    [keys, values],
                    spans,
                    Heads {
                        causal: true,
                        ..Heads::new(2, 4)
                    },
                )
                .map(drop)
            },
            "attention_cached: a cache of f32 keys and q4 values (node 5)",
        ),
        (
            |g, [q, keys, values, spans]| {
                let heads = Heads {
                    causal: true,
                    ..Heads::new(2, 4)
                };
                g.attention_cached([q; 3], [keys, values], spans, heads)?;
                g.attention_cached([q; 3], [keys, values], spans, heads)
                    .map(drop)
            },
            "attention_cached: cache 1 [1, 9, 8] is read already (node 5)",
        ),
    ];
    let build = || {
        let mut g = GraphBuilder::new();
        let nodes = [
            g.input("q", [1, 3, 8]),
            g.state("keys", [1, 9, 8]),
            g.state("values", [1, 9, 8]),
            g.indices("spans", [1, 2]),
        ];
        (g, nodes.map(|node| node.expect("right")))
    };
    for (mistake, message) in cases {
        let (mut g, nodes) = build();
        assert_eq!(
            mistake(&mut g, nodes).expect_err(message).to_string(),
            *message
        );
    }
    let (mut g, [q, keys, values, spans]) = build();
    let mut refused = |operands: [Node; 3], caches: [Node; 2], heads: Heads| {
        g.attention_cached(operands, caches, spans, heads)
            .expect_err("refused")
            .to_string()
    };
    assert_eq!(
        refused([q; 3], [q, values], heads()),
        "attention_cached: cache 0 [1, 3, 8] is no state (node 4)"
    );
    assert_eq!(
        refused([q; 3], [keys, values], Heads::new(3, 4)),
        "attention_cached: operand 0 [1, 3, 8] for heads of 12 columns in all (node 4)"
    );
    let rest = "q, k, v [[1, 3, 8], [1, 3, 8], [1, 3, 8]], caches [[1, 9, 8], [1, 9, 8]], spans [1, 2] for 2 heads, 2 of keys and values, \
                of 4, scale 0.5";
    assert_eq!(
        refused([q; 3], [keys, values], Heads::new(2, 4)),
        format!("attention_cached: {rest}, not causal (node 4)")
    );
    assert_eq!(
        refused([q; 3], [keys, keys], heads()),
        format!("attention_cached: {rest}, causal (node 4)")
    );
    assert!(
        g.attention_cached([q; 3], [keys, values], spans, heads())
            .is_ok()
    );
}
