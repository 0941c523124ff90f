//! The library's recall and storage.

use tectum::NativeCall;
use tectum::kernel::arguments::Slices;
use tectum::kernel::math::{exp, tanh};

use super::super::layout::*;
use super::Recall;
use super::imprint_site::{RunningArgmax, dot};
use super::number;
use super::similarity::{present, regions_of};

/// The result of comparing the current pattern with the stored ones.
struct Found {
    nearest: RunningArgmax,
    cheapest: RunningArgmax,
    /// Rows and scores, in descending order.
    top: Vec<(usize, f32)>,
    weights: Vec<f32>,
    kept: usize,
}

/// The result of the attractors.
struct Attraction {
    rates: [f32; ATTRACTORS],
    leading: RunningArgmax,
    weakest: usize,
}

pub fn native(_: &NativeCall<'_>, arguments: Recall<Slices<'_>>) {
    let Recall {
        live,
        descriptor,
        products,
        library,
        traits,
        memory,
        pull,
        patterns,
        content,
        channels,
    } = arguments;
    let width = OCTANTS * content;
    let present = present(descriptor, content);
    let length = dot(&present, &present).sqrt();
    let reward = number(live, LIVE_REWARD).clamp(-1.0, 1.0);

    let found = compare(products, traits, patterns, length);
    let attraction = attract(
        live,
        &products[patterns..],
        &traits[patterns * TRAIT_WORDS..],
        length,
    );
    let strength =
        number(live, LIVE_RECALL) * found.top.first().map_or(0.0, |(_, score)| score.max(0.0));
    recall(
        library,
        pull,
        &found,
        strength,
        &attraction.rates,
        [patterns, content],
    );
    strategic_pattern(
        live,
        memory,
        library,
        &attraction.leading,
        [patterns, content, channels / 4],
    );

    // The stored pattern, and the traits of the next cycle.
    let is_new = length > 1e-6 && found.nearest.score < number(live, LIVE_FAMILIAR);
    let attracts = length > 1e-6 && reward.abs() > 0.1;
    update_pattern_stats(traits, &found, patterns, is_new, reward);
    let mut take = |row: usize, own: [f32; TRAIT_WORDS]| {
        library[row * width..][..width].copy_from_slice(&present);
        traits[row * TRAIT_WORDS..][..TRAIT_WORDS].copy_from_slice(&own);
    };
    if is_new {
        take(found.cheapest.site, [length, 0.0, 0.0, reward]);
    }
    if attracts {
        take(
            patterns + attraction.weakest,
            [length, reward.abs(), 0.0, reward.signum()],
        );
    }

    memory[MEMORY_TOP..][..TOP].fill(-1.0);
    memory[MEMORY_SCORES..][..TOP].fill(0.0);
    for (rank, (row, score)) in found.top.iter().enumerate() {
        memory[MEMORY_TOP + rank] = *row as f32;
        memory[MEMORY_SCORES + rank] = *score;
    }
    let index_or_minus_one = |row: usize, is_one: bool| if is_one { row as f32 } else { -1.0 };
    let is_first = is_new && found.cheapest.score > 0.5;
    memory[MEMORY_SIMILARITY] = found.nearest.score.max(0.0);
    memory[MEMORY_PULL] = attraction
        .rates
        .iter()
        .fold(strength, |sum, rate| sum + rate);
    memory[MEMORY_NEAREST] = index_or_minus_one(found.nearest.site, found.kept > 0);
    memory[MEMORY_STORED] = index_or_minus_one(found.cheapest.site, is_new);
    memory[MEMORY_ATTRACTOR] = index_or_minus_one(attraction.weakest, attracts);
    memory[MEMORY_KEPT] = (found.kept + usize::from(is_first)) as f32;
}

/// Turns products into scores and finds the highest.
fn compare(products: &mut [f32], traits: &[f32], patterns: usize, length: f32) -> Found {
    let (mut nearest, mut cheapest) = (RunningArgmax::new(), RunningArgmax::new());
    let mut top: Vec<(usize, f32)> = Vec::with_capacity(TOP + 1);
    let mut kept = 0;
    for (row, (product, own)) in products[..patterns]
        .iter()
        .zip(traits.as_chunks::<TRAIT_WORDS>().0)
        .enumerate()
    {
        let [own_length, update_pattern_stats, used, reward] = *own;
        if own_length <= 0.0 {
            cheapest.update(1.0, row);
            continue;
        }
        kept += 1;
        let recency = exp(-update_pattern_stats / 500.0);
        let cosine = product / (own_length * length + 1e-6);
        nearest.update(cosine, row);
        cheapest.update(-(0.5 + 0.5 * reward) * (recency + used), row);
        let score = cosine * recency;
        // After all equal ones: among equals the first wins.
        let rank = top
            .iter()
            .position(|(_, other)| *other < score)
            .unwrap_or(top.len());
        if rank < TOP {
            top.insert(rank, (row, score));
            top.truncate(TOP);
        }
    }
    let parts: Vec<f32> = top
        .iter()
        .map(|(_, score)| exp(5.0 * (score - top[0].1)))
        .collect();
    let sum = parts.iter().sum::<f32>();
    Found {
        nearest,
        cheapest,
        weights: parts.iter().map(|part| part / sum).collect(),
        top,
        kept,
    }
}

fn attract(live: &[u32], products: &[f32], traits: &[f32], length: f32) -> Attraction {
    let mut rates = [0.0; ATTRACTORS];
    let (mut leading, mut weakest) = (RunningArgmax::new(), RunningArgmax::new());
    for (place, (product, own)) in products
        .iter()
        .zip(traits.as_chunks::<TRAIT_WORDS>().0)
        .enumerate()
    {
        let [own_length, strength, _, sign] = *own;
        if own_length <= 0.0 {
            weakest.update(1.0, place);
            continue;
        }
        weakest.update(-strength, place);
        if sign > 0.0 {
            leading.update(strength, place);
        }
        rates[place] = number(live, LIVE_ATTRACTION)
            * strength
            * sign
            * 0.5
            * (1.0 + product / (own_length * length + 1e-6));
    }
    Attraction {
        rates,
        leading,
        weakest: weakest.site,
    }
}

/// T of every region.
fn recall(
    library: &[f32],
    pull: &mut [f32],
    found: &Found,
    strength: f32,
    rates: &[f32; ATTRACTORS],
    [patterns, content]: [usize; 2],
) {
    let width = OCTANTS * content;
    let mut recalled = vec![0.0; width];
    let mut add = |row: usize, weight: f32| {
        if weight != 0.0 {
            recalled
                .iter_mut()
                .zip(&library[row * width..])
                .for_each(|(sum, v)| *sum += weight * v);
        }
    };
    found
        .top
        .iter()
        .zip(&found.weights)
        .for_each(|((row, _), weight)| add(*row, strength * weight));
    rates
        .iter()
        .enumerate()
        .for_each(|(place, rate)| add(patterns + place, *rate));
    for (octant, recalled) in recalled.chunks_exact(content).enumerate() {
        for region in regions_of(octant) {
            pull[region * content..][..content].copy_from_slice(recalled);
        }
    }
}

/// The strategic pattern: the content of the leading attractor, folded into the temporal channels.
fn strategic_pattern(
    live: &[u32],
    memory: &mut [f32],
    library: &[f32],
    leading: &RunningArgmax,
    [patterns, content, temporal]: [usize; 3],
) {
    memory[MEMORY_STRATEGIC..][..temporal].fill(0.0);
    memory[MEMORY_STRATEGIC_WEIGHT] = 0.0;
    memory[MEMORY_STRATEGIC_DRIVE] = 0.0;
    if leading.score <= 0.0 {
        return;
    }
    let pattern = &library[(patterns + leading.site) * OCTANTS * content..][..OCTANTS * content];
    for (channel, folded) in memory[MEMORY_STRATEGIC..][..temporal]
        .iter_mut()
        .enumerate()
    {
        let channels = (channel..content).step_by(temporal);
        let parts = (OCTANTS * channels.len()) as f32;
        let sum: f32 = channels
            .map(|c| pattern.iter().skip(c).step_by(content).sum::<f32>())
            .sum();
        *folded = tanh(sum / parts);
    }
    let mean = memory[MEMORY_STRATEGIC..][..temporal].iter().sum::<f32>() / temporal as f32;
    memory[MEMORY_STRATEGIC_WEIGHT] = number(live, LIVE_STRATEGY) * leading.score;
    memory[MEMORY_STRATEGIC_DRIVE] = leading.score * tanh(mean);
}

fn update_pattern_stats(
    traits: &mut [f32],
    found: &Found,
    patterns: usize,
    is_new: bool,
    reward: f32,
) {
    let (rows, attractors) = traits
        .as_chunks_mut::<TRAIT_WORDS>()
        .0
        .split_at_mut(patterns);
    for [length, update_pattern_stats, used, _] in rows.iter_mut() {
        if *length > 0.0 {
            *update_pattern_stats = (*update_pattern_stats + 1.0).min(1e6);
            *used *= 0.999;
        }
    }
    for ((row, _), weight) in found.top.iter().zip(&found.weights) {
        let [_, _, used, own_reward] = &mut rows[*row];
        *used += 0.001 * weight;
        *own_reward += 0.1 * weight * (reward - *own_reward);
    }
    if found.kept > 0 && !is_new {
        rows[found.nearest.site][1] = 0.0;
    }
    for [_, strength, ..] in attractors {
        let left = 0.95 * *strength;
        *strength = if left < 1e-6 { 0.0 } else { left };
    }
}
