//! Convolutions, transposed convolutions, pooling and running sums, with sizes of windows that fit
//! and that do not.

use std::rc::Rc;

use tectum::{
    Activation, Convolution, DType, FilterLayout, PoolDivisor, Pooling, TransposedConvolution,
    Window,
};

use super::memory::{Seen, Word};
use super::operation::{Bound, Operation, all, product, reads, sum, unless, writes};
use super::products::ended;
use super::world::World;

/// Positions along an axis, and of all axes, padded.
const MAX_EXTENT: u128 = i32::MAX as u128 / 2;
const MAX_POSITIONS: u128 = u32::MAX as u128;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    match world.random.below(5) {
        0 => convolution(world, plan),
        1 => transposed(world, plan),
        2 => max_pool(world, plan),
        3 => average_pool(world, plan),
        _ => cumsum(world, plan),
    }
}

/// Sizes of a window's use: those of the input, and what a transposed convolution adds.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    window: Window,
    size_in: [usize; 3],
    adds: [usize; 3],
}

impl Sizes {
    /// One to three axes, padded by less than the window or by more.
    fn drawn(world: &mut World) -> Self {
        let first = world.below(3);
        let mut axis = |low: usize, high: usize, unused: usize| -> [usize; 3] {
            std::array::from_fn(|axis| {
                if axis < first {
                    unused
                } else {
                    low + world.below(high - low + 1)
                }
            })
        };
        let (kernel, stride, dilation) = (axis(1, 3, 1), axis(1, 3, 1), axis(1, 2, 1));
        let (pad_before, pad_after, size_in, adds) =
            (axis(0, 2, 0), axis(0, 2, 0), axis(1, 6, 1), axis(0, 2, 0));
        Self {
            window: Window {
                kernel,
                stride,
                dilation,
                pad_before,
                pad_after,
            },
            size_in,
            adds,
        }
    }

    /// Occasionally one number at a limit, or padding that is possible along each axis and not
    /// along all.
    fn distort(&mut self, world: &mut World) {
        let place = world.below(3);
        let value = if world.chance(3) { 0 } else { world.extreme() };
        let Window {
            kernel,
            stride,
            dilation,
            pad_before,
            pad_after,
        } = &mut self.window;
        match world.random.below(60) {
            0 => kernel[place] = value,
            1 => stride[place] = value,
            2 => dilation[place] = value,
            3 => pad_before[place] = value,
            4 => pad_after[place] = value,
            5 => self.size_in[place] = value,
            6 => self.adds[place] = value,
            7 => *pad_before = [1 << 20; 3],
            _ => {}
        }
    }

    fn extent(&self, axis: usize) -> Option<u128> {
        let [kernel, stride, dilation] =
            [self.window.kernel, self.window.stride, self.window.dilation]
                .map(|sizes| sizes[axis] as u128);
        let last = kernel.checked_sub(1)?.saturating_mul(dilation);
        ([stride, dilation]
            .into_iter()
            .all(|size| (1..=MAX_EXTENT).contains(&size))
            && last < MAX_EXTENT)
            .then_some(last + 1)
    }

    fn padded(&self, axis: usize, size: usize) -> Option<u128> {
        let padded = [
            size,
            self.window.pad_before[axis],
            self.window.pad_after[axis],
        ]
        .into_iter()
        .map(|size| size as u128)
        .sum::<u128>();
        (padded <= MAX_EXTENT).then_some(padded)
    }

    /// The sizes of the output, if there are such.
    fn out(&self) -> Option<[usize; 3]> {
        let (mut out, mut positions) = ([0; 3], 1u128);
        for (axis, out) in out.iter_mut().enumerate() {
            let (padded, extent) = (self.padded(axis, self.size_in[axis])?, self.extent(axis)?);
            *out = (padded.checked_sub(extent)? / self.window.stride[axis] as u128 + 1) as usize;
            positions *= padded;
        }
        (positions <= MAX_POSITIONS).then_some(out)
    }

    fn transposed_out(&self) -> Option<[usize; 3]> {
        let (mut out, mut positions) = ([0; 3], 1u128);
        for (axis, out) in out.iter_mut().enumerate() {
            let (extent, pads) = (self.extent(axis)?, self.padded(axis, 0)?);
            let steps = (self.size_in[axis] as u128)
                .checked_sub(1)?
                .saturating_mul(self.window.stride[axis] as u128);
            let added = self.adds[axis] as u128;
            let whole =
                (steps <= MAX_EXTENT && added <= MAX_EXTENT).then_some(steps + extent + added)?;
            let left = whole
                .checked_sub(pads)
                .filter(|left| (1..=MAX_EXTENT).contains(left))?;
            *out = left as usize;
            positions *= whole;
        }
        (positions <= MAX_POSITIONS).then_some(out)
    }

    /// What the element of a window reads at a place of the grid on which it moves.
    fn read(&self, grid: [usize; 3], tap: [usize; 3], size: [usize; 3]) -> Option<usize> {
        let mut index = 0;
        for axis in 0..3 {
            let at = (grid[axis] * self.window.stride[axis]
                + tap[axis] * self.window.dilation[axis])
                .checked_sub(self.window.pad_before[axis])?;
            index = index * size[axis] + if at < size[axis] { at } else { return None };
        }
        Some(index)
    }
}

fn places([planes, rows, columns]: [usize; 3]) -> impl Iterator<Item = [usize; 3]> {
    (0..planes).flat_map(move |plane| {
        (0..rows).flat_map(move |row| (0..columns).map(move |column| [plane, row, column]))
    })
}

fn with(first: &[usize], space: [usize; 3]) -> u128 {
    product(&[first, &space].concat())
}

/// Batch, channels of input and output, groups.
fn channels(world: &mut World) -> [usize; 4] {
    let groups = world.random.pick(&[1, 1, 2, 3]);
    let batch = if world.chance(25) {
        0
    } else {
        1 + world.below(2)
    };
    [
        batch,
        groups * (1 + world.below(3)),
        groups * (1 + world.below(3)),
        groups,
    ]
}

/// Elements of a value; of one without sizes any number.
fn elements(sizes: &[usize], space: Option<[usize; 3]>) -> usize {
    usize::try_from(with(sizes, space.unwrap_or([1; 3]))).unwrap_or(1)
}

fn are_groups([_, channels_in, channels_out, groups]: [usize; 4]) -> bool {
    groups > 0
        && channels_in > 0
        && channels_in.is_multiple_of(groups)
        && channels_out.is_multiple_of(groups)
}

fn convolution(world: &mut World, plan: usize) -> Operation {
    let (mut given, mut sizes) = (channels(world), Sizes::drawn(world));
    let [batch, channels_in, channels_out, groups] = given;
    let layout = if world.chance(3) && channels_in > groups {
        FilterLayout::Panels
    } else {
        FilterLayout::Rows
    };
    let (out, depth) = (sizes.out(), channels_in / groups * sizes.window.taps());
    let floats = if layout == FilterLayout::Panels {
        groups * (channels_out / groups).div_ceil(16) * 16 * depth
    } else {
        channels_out * depth
    };
    let x = world.source(
        plan,
        DType::F32,
        elements(&[batch, channels_in], Some(sizes.size_in)),
    );
    let w = world.source(plan, DType::F32, floats);
    let result = elements(&[batch, channels_out], out);
    let y = world.target(plan, DType::F32, result);
    let [bias, residual] = [channels_out, result]
        .map(|len| world.chance(3).then(|| world.source(plan, DType::F32, len)));
    let activation = world.random.pick(&[
        Activation::None,
        Activation::None,
        Activation::Relu,
        Activation::HardSwish,
        Activation::Elu,
    ]);
    world.distort(&mut given);
    sizes.distort(world);
    let (out, [batch, channels_in, channels_out, groups]) = (sizes.out(), given);
    let per_in = channels_in.checked_div(groups).unwrap_or(0);
    let filters =
        |count: u128, per_in: usize| count.saturating_mul(with(&[per_in], sizes.window.kernel));
    let fits = out.is_some_and(|out| {
        let in_panels = layout == FilterLayout::Panels;
        let rows = if in_panels && groups > 0 {
            groups as u128 * (channels_out / groups).div_ceil(16) as u128 * 16
        } else {
            channels_out as u128
        };
        let counted =
            filters(channels_out as u128 + 16 * groups as u128, per_in) <= isize::MAX as u128;
        let lengths = [
            (x, with(&[batch, channels_in], sizes.size_in)),
            (w, filters(rows, per_in)),
            (y, with(&[batch, channels_out], out)),
        ];
        let fills = lengths
            .into_iter()
            .all(|(seen, len)| seen.len as u128 == len);
        let rest = residual
            .is_none_or(|seen| seen.len as u128 == with(&[batch, channels_out], out))
            && bias.is_none_or(|seen| seen.len == channels_out);
        are_groups(given) && !(in_panels && channels_in == groups) && counted && fills && rest
    });
    let inputs: Vec<Seen> = [Some(x), Some(w), bias, residual]
        .into_iter()
        .flatten()
        .collect();
    let settings = Convolution {
        batch,
        groups,
        layout,
        activation,
        residual: residual.map(|seen| seen.view),
        ..Convolution::new(channels_in, channels_out, sizes.size_in, sizes.window)
    };
    Operation {
        text: format!(
            "convolution {x} {w} {y} {given:?} {sizes:?} {layout:?} {activation:?} {}",
            tail_text(bias, residual)
        ),
        refused: unless(fits),
        launches: launches(&inputs, y),
        given: inputs.into_iter().chain([y]).collect(),
        record: Box::new(move |plan| {
            plan.convolution(
                x.view,
                w.view,
                bias.map(|seen| seen.view),
                y.view,
                &settings,
            )
        }),
        step: Rc::new(move |space| {
            let Some(out) = out else { return };
            let (pixels, volume, taps) = (
                out.iter().product::<usize>(),
                sizes.size_in.iter().product::<usize>(),
                sizes.window.taps(),
            );
            let (per_out, depth) = (channels_out / groups, per_in * taps);
            let element = |row: usize, at: usize| match layout {
                FilterLayout::Rows => row * depth + at,
                _ => {
                    ((row / per_out * per_out.div_ceil(16) + row % per_out / 16) * depth + at) * 16
                        + row % per_out % 16
                }
            };
            let numbers = [x, w].map(|seen| space.numbers(&seen));
            if all(&numbers[1]).is_none() {
                // Padding is multiplied on some devices: 0·∞ is NaN.
                return space.put_numbers(&y, vec![None; y.len]);
            }
            let one = |place: usize| {
                let (image, row) = (place / pixels / channels_out, place / pixels % channels_out);
                let grid = [
                    place % pixels / out[2] / out[1],
                    place % pixels / out[2] % out[1],
                    place % out[2],
                ];
                let mut terms = Vec::new();
                for inside in 0..per_in {
                    let channel = image * channels_in + row / per_out * per_in + inside;
                    for (at, tap) in places(sizes.window.kernel).enumerate() {
                        let Some(read) = sizes.read(grid, tap, sizes.size_in) else {
                            continue;
                        };
                        terms.push([
                            numbers[0][channel * volume + read],
                            numbers[1][element(row, inside * taps + at)],
                        ]);
                    }
                }
                (terms, row, place)
            };
            let ends = [bias, residual].map(|seen| seen.map(|seen| space.numbers(&seen)));
            let results = (0..y.len).map(|place| {
                let (terms, row, place) = one(place);
                finished(
                    &terms,
                    [
                        ends[0].as_ref().map(|bias| bias[row]),
                        ends[1].as_ref().map(|residual| residual[place]),
                    ],
                    activation,
                )
            });
            space.put_numbers(&y, results.collect::<Vec<_>>());
        }),
    }
}

fn transposed(world: &mut World, plan: usize) -> Operation {
    let (mut given, mut sizes) = (channels(world), Sizes::drawn(world));
    let [batch, channels_in, channels_out, groups] = given;
    let out = sizes.transposed_out();
    let x = world.source(
        plan,
        DType::F32,
        elements(&[batch, channels_in], Some(sizes.size_in)),
    );
    let w = world.source(
        plan,
        DType::F32,
        channels_in * (channels_out / groups) * sizes.window.taps(),
    );
    let y = world.target(plan, DType::F32, elements(&[batch, channels_out], out));
    let bias = world
        .chance(3)
        .then(|| world.source(plan, DType::F32, channels_out));
    let activation = world.random.pick(&[
        Activation::None,
        Activation::None,
        Activation::Relu,
        Activation::Relu6,
        Activation::HardSigmoid,
    ]);
    world.distort(&mut given);
    sizes.distort(world);
    let (out, [batch, channels_in, channels_out, groups]) = (sizes.transposed_out(), given);
    let per_out = channels_out.checked_div(groups).unwrap_or(0);
    let fits = out.is_some_and(|out| {
        let wanted = [
            (x, with(&[batch, channels_in], sizes.size_in)),
            (w, with(&[channels_in, per_out], sizes.window.kernel)),
            (y, with(&[batch, channels_out], out)),
        ];
        are_groups(given)
            && wanted
                .into_iter()
                .all(|(seen, len)| seen.len as u128 == len)
            && bias.is_none_or(|seen| seen.len == channels_out)
    });
    let inputs: Vec<Seen> = [Some(x), Some(w), bias].into_iter().flatten().collect();
    let plain = TransposedConvolution::new(channels_in, channels_out, sizes.size_in, sizes.window);
    let settings = TransposedConvolution {
        batch,
        groups,
        output_padding: sizes.adds,
        activation,
        ..plain
    };
    Operation {
        text: format!(
            "convolution_transposed {x} {w} {y} {given:?} {sizes:?} {activation:?} {}",
            tail_text(bias, None)
        ),
        refused: unless(fits),
        launches: launches(&inputs, y),
        given: inputs.into_iter().chain([y]).collect(),
        record: Box::new(move |plan| {
            plan.convolution_transposed(
                x.view,
                w.view,
                bias.map(|seen| seen.view),
                y.view,
                &settings,
            )
        }),
        step: Rc::new(move |space| {
            let Some(out) = out else { return };
            let (pixels, volume, taps) = (
                out.iter().product::<usize>(),
                sizes.size_in.iter().product::<usize>(),
                sizes.window.taps(),
            );
            let (per_in, numbers) = (
                channels_in / groups,
                [x, w].map(|seen| space.numbers(&seen)),
            );
            if all(&numbers[1]).is_none() {
                // As for convolutions.
                return space.put_numbers(&y, vec![None; y.len]);
            }
            let mut terms = vec![Vec::new(); y.len];
            for (image, channel) in
                (0..batch).flat_map(|image| (0..channels_in).map(move |channel| (image, channel)))
            {
                for (from, grid) in places(sizes.size_in).enumerate() {
                    for (at, tap) in places(sizes.window.kernel).enumerate() {
                        let Some(reached) = sizes.read(grid, tap, out) else {
                            continue;
                        };
                        for inside in 0..per_out {
                            let to = image * channels_out + channel / per_in * per_out + inside;
                            let pair = [
                                numbers[0][(image * channels_in + channel) * volume + from],
                                numbers[1][(channel * per_out + inside) * taps + at],
                            ];
                            terms[to * pixels + reached].push(pair);
                        }
                    }
                }
            }
            let bias = bias.map(|seen| space.numbers(&seen));
            let of_row = |place: usize| {
                bias.as_ref()
                    .map(|bias| bias[place / pixels % channels_out])
            };
            let results = terms
                .iter()
                .enumerate()
                .map(|(place, terms)| finished(terms, [of_row(place), None], activation));
            space.put_numbers(&y, results.collect::<Vec<_>>());
        }),
    }
}

fn tail_text(bias: Option<Seen>, residual: Option<Seen>) -> String {
    [bias, residual]
        .into_iter()
        .zip(["bias", "residual"])
        .filter_map(|(seen, name)| seen.map(|seen| format!("{name} {seen}")))
        .collect::<Vec<_>>()
        .join(" ")
}

fn launches(inputs: &[Seen], y: Seen) -> Vec<Vec<Bound>> {
    if y.len == 0 {
        vec![]
    } else {
        vec![
            inputs
                .iter()
                .map(|seen| reads(*seen, DType::F32))
                .chain([writes(y, DType::F32)])
                .collect(),
        ]
    }
}

/// The activation of the sum of products, bias and residual, if all are known.
fn finished(
    terms: &[[Option<f64>; 2]],
    added: [Option<Option<f64>>; 2],
    activation: Activation,
) -> Option<(f64, f64)> {
    let factors = terms
        .iter()
        .copied()
        .chain(added.into_iter().flatten().map(|value| [value, Some(1.0)]));
    let products: Option<Vec<f64>> = factors
        .map(|pair| all(&pair).map(|pair| pair[0] * pair[1]))
        .collect();
    let total = sum(&products?);
    // Activations of large arguments are as inexact as these.
    let (value, bound) = ended(total, activation, None, None);
    Some((
        value,
        if bound > 0.0 {
            1.2 * bound + 16.0 * f64::from(f32::EPSILON) * (1.0 + value.abs())
        } else {
            0.0
        },
    ))
}

/// A pooling with its views; what indices it has, if it takes a maximum.
struct Pooled {
    sizes: Sizes,
    channels: usize,
    x: Seen,
    y: Seen,
    indices: Option<Seen>,
    fits: bool,
}

fn pooled(world: &mut World, plan: usize, takes_indices: bool) -> Pooled {
    let mut sizes = Sizes::drawn(world);
    let channels = if world.chance(20) {
        0
    } else {
        1 + world.below(4)
    };
    let x = world.source(plan, DType::F32, elements(&[channels], Some(sizes.size_in)));
    let len = elements(&[channels], sizes.out());
    let y = world.target(plan, DType::F32, len);
    let dtype = world
        .random
        .pick(&[DType::U32, DType::I32, DType::U32, DType::F32]);
    let indices = (takes_indices && world.chance(2)).then(|| world.target(plan, dtype, len));
    let mut given = [channels];
    world.distort(&mut given);
    sizes.distort(world);
    let [channels] = given;
    let fits = sizes.out().is_some_and(|out| {
        let is_full = x.len as u128 == with(&[channels], sizes.size_in)
            && y.len as u128 == with(&[channels], out);
        is_full
            && indices.is_none_or(|seen| {
                seen.len == y.len && matches!(seen.dtype, DType::U32 | DType::I32)
            })
    });
    Pooled {
        sizes,
        channels,
        x,
        y,
        indices,
        fits,
    }
}

impl Pooled {
    fn settings(&self) -> Pooling {
        Pooling {
            channels: self.channels,
            size_in: self.sizes.size_in,
            window: self.sizes.window,
        }
    }

    /// For each element of the result the channel and the elements of it that its window reads.
    fn windows(&self) -> Vec<(usize, [usize; 3], Vec<usize>)> {
        let (sizes, Some(out)) = (self.sizes, self.sizes.out()) else {
            return Vec::new();
        };
        let windows = |channel: usize| {
            places(out).map(move |grid| {
                (
                    channel,
                    grid,
                    places(sizes.window.kernel)
                        .filter_map(|tap| sizes.read(grid, tap, sizes.size_in))
                        .collect(),
                )
            })
        };
        (0..self.channels).flat_map(windows).collect()
    }
}

fn max_pool(world: &mut World, plan: usize) -> Operation {
    let pool = pooled(world, plan, true);
    let Pooled {
        sizes,
        channels,
        x,
        y,
        indices,
        fits,
    } = pool;
    let settings = pool.settings();
    let launch = [
        Some(reads(x, DType::F32)),
        Some(writes(y, DType::F32)),
        indices.map(|seen| writes(seen.as_words(), DType::U32)),
    ];
    Operation {
        text: format!(
            "max_pool {x} {y} {channels} {sizes:?} {}",
            indices.map_or(String::new(), |seen| format!("indices {seen}"))
        ),
        refused: unless(fits),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![launch.into_iter().flatten().collect()]
        },
        given: [Some(x), Some(y), indices].into_iter().flatten().collect(),
        record: Box::new(move |plan| {
            plan.max_pool(x.view, y.view, indices.map(|seen| seen.view), &settings)
        }),
        step: Rc::new(move |space| {
            let (numbers, volume) = (space.numbers(&x), sizes.size_in.iter().product::<usize>());
            let best = |(channel, _, read): (usize, [usize; 3], Vec<usize>)| {
                let values = all(&read
                    .iter()
                    .map(|at| numbers[channel * volume + at])
                    .collect::<Vec<_>>())?;
                let place = (0..values.len()).reduce(|best, place| {
                    if values[place] > values[best] {
                        place
                    } else {
                        best
                    }
                });
                Some(place.map_or((f64::NEG_INFINITY, u32::MAX), |place| {
                    (values[place], read[place] as u32)
                }))
            };
            let found: Vec<Option<(f64, u32)>> = pool.windows().into_iter().map(best).collect();
            space.put_numbers(
                &y,
                found
                    .iter()
                    .map(|best| best.map(|(value, _)| (value, 0.0)))
                    .collect::<Vec<_>>(),
            );
            if let Some(indices) = indices {
                let words = found
                    .iter()
                    .map(|best| best.map_or(Word::Unknown, |(_, place)| Word::Exact(place)));
                space.put(&indices.as_words(), &words.collect::<Vec<_>>());
            }
        }),
    }
}

fn average_pool(world: &mut World, plan: usize) -> Operation {
    let pool = pooled(world, plan, false);
    let Pooled {
        sizes,
        channels,
        x,
        y,
        fits,
        ..
    } = pool;
    let settings = pool.settings();
    let mut pad_after = sizes.window.pad_after.map(|after| {
        if after < 100 {
            world.below(after + 1)
        } else {
            0
        }
    });
    if world.chance(25) {
        pad_after[world.below(3)] = world.extreme();
    }
    let divisor = if world.chance(2) {
        PoolDivisor::Inside
    } else {
        PoolDivisor::Padded { pad_after }
    };
    let is_counted = divisor == PoolDivisor::Inside
        || (0..3).all(|axis| pad_after[axis] <= sizes.window.pad_after[axis]);
    Operation {
        text: format!("average_pool {x} {y} {channels} {sizes:?} {divisor:?}"),
        refused: unless(fits && is_counted),
        launches: launches(&[x], y),
        given: vec![x, y],
        record: Box::new(move |plan| plan.average_pool(x.view, y.view, &settings, divisor)),
        step: Rc::new(move |space| {
            let (numbers, volume) = (space.numbers(&x), sizes.size_in.iter().product::<usize>());
            let mean = |(channel, grid, read): (usize, [usize; 3], Vec<usize>)| {
                let values = all(&read
                    .iter()
                    .map(|at| numbers[channel * volume + at])
                    .collect::<Vec<_>>())?;
                let Window {
                    kernel,
                    stride,
                    dilation,
                    pad_before,
                    ..
                } = sizes.window;
                let counts = |axis: usize| {
                    let at = |tap: usize| grid[axis] * stride[axis] + tap * dilation[axis];
                    (0..kernel[axis])
                        .filter(|tap| {
                            at(*tap) < pad_before[axis] + sizes.size_in[axis] + pad_after[axis]
                        })
                        .count()
                };
                let count = if divisor == PoolDivisor::Inside {
                    read.len()
                } else {
                    counts(0) * counts(1) * counts(2)
                };
                let (total, bound) = sum(&values);
                let mean = if count == 0 {
                    0.0
                } else {
                    total / count as f64
                };
                Some((
                    mean,
                    bound / count.max(1) as f64
                        + if count > 1 {
                            4.0 * f64::from(f32::EPSILON) * mean.abs()
                        } else {
                            0.0
                        },
                ))
            };
            space.put_numbers(&y, pool.windows().into_iter().map(mean).collect::<Vec<_>>());
        }),
    }
}

/// Rows of at most one segment.
fn cumsum(world: &mut World, plan: usize) -> Operation {
    let dtype = world
        .random
        .pick(&[DType::F32, DType::F32, DType::I32, DType::U32]);
    let mut given = [
        world.below(5),
        if world.chance(10) {
            1 + world.below(1024)
        } else {
            world.below(20)
        },
    ];
    let len = given[0] * given[1];
    let (x, y) = (
        world.source(plan, dtype, len),
        world.target(plan, dtype, len),
    );
    world.distort(&mut given);
    let ([rows, cols], exclusive, reverse) = (given, world.chance(2), world.chance(2));
    let needs = if x.dtype == DType::I32 {
        DType::I32
    } else {
        DType::F32
    };
    let fits = x.len as u128 == product(&given)
        && y.len == x.len
        && matches!(x.dtype, DType::F32 | DType::I32);
    Operation {
        text: format!("cumsum {x} {y} {given:?} exclusive {exclusive} reverse {reverse}"),
        refused: unless(fits),
        launches: if x.len == 0 {
            vec![]
        } else {
            vec![vec![reads(x, needs), writes(y, needs)]]
        },
        given: vec![x, y],
        record: Box::new(move |plan| plan.cumsum(x.view, y.view, rows, cols, exclusive, reverse)),
        step: Rc::new(move |space| {
            let taken = |col: usize| match (exclusive, reverse) {
                (false, false) => 0..col + 1,
                (true, false) => 0..col,
                (false, true) => col..cols,
                (true, true) => col + 1..cols,
            };
            if needs == DType::I32 {
                let words = space.integers(&x);
                let total = |place: usize| {
                    let row = &words[place / cols * cols..][..cols];
                    row[taken(place % cols)]
                        .iter()
                        .try_fold(0u32, |total, word| {
                            word.map(|word| total.wrapping_add(word))
                        })
                        .map_or(Word::Unknown, Word::Exact)
                };
                return space.put(&y, &(0..x.len).map(total).collect::<Vec<_>>());
            }
            let numbers = space.numbers(&x);
            let total = |place: usize| {
                all(&numbers[place / cols * cols..][..cols][taken(place % cols)])
                    .map(|terms| sum(&terms))
            };
            space.put_numbers(&y, (0..x.len).map(total).collect::<Vec<_>>());
        }),
    }
}
