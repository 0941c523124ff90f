//! Attention over caches in random networks: caches of f32 and of codes that hold some tokens
//! already, in the device's layout.

use tectum::operation::attention::cache_reference::ReferenceCache;
use tectum::{CacheFormats, Result};

use super::random_graph::Random;
use crate::operation::AttentionCached;
use crate::{CompiledGraph, Graph, GraphBuilder, Heads, Node, Operation, Tensor};

/// Capacity of the caches in tokens: more than one window of codes, and a part of the next.
const ROOM: usize = 100;

/// Attention of `x` to caches of some pair of formats except f16; `spans` gives their fill.
pub fn attention(
    g: &mut GraphBuilder,
    random: &mut Random,
    x: Node,
    spans: Node,
    step: usize,
) -> Result<Node> {
    let sizes = g.graph().shape(x)?.sizes().expect("fixed");
    let [batch, width] = [sizes[0], sizes[2]];
    let (count, kv) = [(1, 1), (2, 1), (2, 2), (4, 2)][random.below(4)];
    let heads = Heads {
        kv,
        causal: true,
        ..Heads::new(count, width / count)
    };
    let columns = [width, kv * width / count, kv * width / count];
    let mut operands = [x; 3];
    for (index, operand) in operands.iter_mut().enumerate() {
        let weight = g.parameter(&format!("cached{index}.{step}"), [columns[index], width])?;
        *operand = g.matmul(x, weight.transpose())?;
    }
    // New rows of f16 are rounded to halves directly, some to the other neighbour in float64: no
    // sum of roundings bounds that.
    let formats = [
        CacheFormats::F32,
        CacheFormats::Q8,
        CacheFormats::K8V4,
        CacheFormats::Q4,
    ][random.below(4)]
    .each();
    let keys = g.state_as(
        &format!("keys{step}"),
        formats[0],
        [batch, ROOM, columns[1]],
    )?;
    let values = g.state_as(
        &format!("values{step}"),
        formats[1],
        [batch, ROOM, columns[1]],
    )?;
    g.attention_cached(operands, [keys, values], spans, heads)
}

/// The other feeds: spans of items that have cached no window, some or one and a part of the next,
/// with all, some or none of their rows new; and the values of the caches.
pub fn feed(graph: &Graph, feeds: &mut Vec<(Node, Tensor)>, seed: u64) {
    let mut random = Random::new(seed ^ 0xcac4e);
    for (name, node, shape) in graph.inputs().filter(|(name, ..)| *name == "spans") {
        let time = graph
            .inputs()
            .find(|(name, ..)| *name == "ids")
            .and_then(|(_, _, shape)| shape.sizes())
            .expect("there")[1];
        let [items, _] = shape.matrix();
        let span = |_| {
            [
                [1, 30, 64, 70][random.below(4)] as f64,
                [time, random.below(time + 1)][random.below(2)] as f64,
            ]
        };
        let data = (0..items).flat_map(span).collect();
        let place = feeds
            .iter()
            .position(|(fed, _)| *fed == node)
            .unwrap_or_else(|| panic!("{name} is fed"));
        feeds[place].1 = Tensor::new(shape, data).expect("fits");
    }
    for (_, node, shape) in graph.states() {
        let data = (0..shape.len()).map(|_| f64::from(random.unit())).collect();
        feeds.push((node, Tensor::new(shape, data).expect("fits")));
    }
}

/// Sets a state of a compiled graph to the words of the values that are cached.
pub fn set(
    run: &mut CompiledGraph,
    graph: &Graph,
    (name, node): (&str, Node),
    feeds: &[(Node, Tensor)],
) {
    let fed = |node: Node| {
        &feeds
            .iter()
            .find(|(fed, _)| *fed == node)
            .expect("invariant: all are fed")
            .1
    };
    let reader = |operation: &Operation| match operation {
        Operation::AttentionCached(AttentionCached {
            caches,
            formats,
            spans,
            ..
        }) => caches
            .iter()
            .position(|cache| *cache == node)
            .map(|side| (formats.each()[side], side == 0, *spans)),
        _ => None,
    };
    let (format, is_keys, spans) = graph
        .nodes
        .values()
        .find_map(|definition| reader(&definition.operation))
        .expect("invariant: it is read");
    let (values, spans) = (fed(node), fed(spans).data());
    if !format.is_quantized() {
        let values: Vec<f32> = values.data().iter().map(|&value| value as f32).collect();
        return run.set_state(name, &values).expect("fits");
    }
    let sizes = values.shape().sizes().expect("fixed");
    let [rows, columns] = [sizes[1], sizes[2]];
    let mut words = Vec::new();
    for (values, span) in values.data().chunks(rows * columns).zip(spans.chunks(2)) {
        let mut cache = ReferenceCache::new(
            format,
            is_keys,
            [rows, columns],
            vec![0; format.words(rows, columns)],
        );
        cache.add(0, &values[..span[0] as usize * columns]);
        words.extend(cache.words);
    }
    run.set_words(name, &words).expect("fits");
}
