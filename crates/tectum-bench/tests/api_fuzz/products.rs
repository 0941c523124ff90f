//! Matrix products of every kind, stencils, rotary positions, attention, launches of a user's
//! kernel.

use std::rc::Rc;
use std::sync::{Arc, LazyLock};

use tectum::kernel::loops_over;
use tectum::operation::product::gemm_batched::Packing;
use tectum::{
    Activation, AttentionSizes, Boundary, DType, ErrorKind, GemmEpilogue, Kernel, Matrices, Matrix,
    Points, TypedKernel,
};
use tectum_programs::{Bounds, Checked, LaunchConfig, Program};

use super::memory::{Seen, Space, Word};
use super::operation::{Bound, Operation, all, product, reads, sum, unless, writes};
use super::world::World;

pub fn draw(world: &mut World, plan: usize) -> Operation {
    match world.random.below(10) {
        0 | 1 => gemm(world, plan),
        2 => matvec(world, plan),
        3 => batched(world, plan),
        4 => bytes(world, plan),
        5 => stencil(world, plan),
        6 => attention(world, plan),
        7 => rotary(world, plan),
        8 => launch(world, plan),
        _ => super::chains::draw(world, plan),
    }
}

/// A tail of a product with its views.
pub fn tail(
    world: &mut World,
    plan: usize,
    dtype: DType,
    [bias, residual]: [usize; 2],
) -> (GemmEpilogue, [Option<Seen>; 2]) {
    let views = [bias, residual].map(|len| world.chance(4).then(|| world.source(plan, dtype, len)));
    let activation = world.random.pick(&[
        Activation::None,
        Activation::None,
        Activation::Relu,
        Activation::Tanh,
        Activation::Sigmoid,
    ]);
    let [bias, residual] = views;
    (
        GemmEpilogue {
            bias: bias.map(|seen| seen.view),
            activation,
            residual: residual.map(|seen| seen.view),
        },
        views,
    )
}

/// The end of a product: bias, activation, residual, with the error that each adds.
pub fn ended(
    (value, bound): (f64, f64),
    activation: Activation,
    bias: Option<f64>,
    residual: Option<f64>,
) -> (f64, f64) {
    let unit = f64::from(f32::EPSILON);
    let (biased, mut slack) = (value + bias.unwrap_or(0.0), bound);
    let quarter = |x: f64| (x * 256.0).fract() == 0.0 && x.abs() < 65_536.0;
    if !(quarter(value) && bias.is_none_or(quarter)) {
        slack += 2.0 * unit * (value.abs() + bias.unwrap_or(0.0).abs());
    }
    let active = activation.reference(biased);
    if !matches!(activation, Activation::None | Activation::Relu) {
        slack += 8.0 * unit;
    }
    let total = active + residual.unwrap_or(0.0);
    let is_exact =
        slack == 0.0 && residual.is_none_or(|residual| quarter(residual) && quarter(active));
    (
        total,
        if is_exact {
            0.0
        } else {
            slack + 2.0 * unit * (active.abs() + residual.unwrap_or(0.0).abs())
        },
    )
}

/// An element of a product, from known rows and columns.
pub fn dot(terms: impl Iterator<Item = Option<(Option<f64>, Option<f64>)>>) -> Option<(f64, f64)> {
    let products: Vec<Option<f64>> = terms
        .map(|pair| {
            pair.and_then(|(a, b)| all(&[a, b]))
                .map(|pair| pair[0] * pair[1])
        })
        .collect();
    all(&products).map(|products| sum(&products))
}

fn gemm(world: &mut World, plan: usize) -> Operation {
    let dtype = world.float();
    let ([m, k, n], _) = world.sizes([0, 0, 0]);
    let (a, b, y) = (
        world.source(plan, dtype, m * k),
        world.source(plan, dtype, k * n),
        world.target(plan, dtype, m * n),
    );
    let (tail, views) = tail(world, plan, dtype, [n, m * n]);
    let mut sizes = [m, k, n];
    world.distort(&mut sizes);
    let inner = if world.chance(20) {
        world.extreme()
    } else {
        sizes[1]
    };
    let [m, k, n] = sizes;
    let flips = [world.chance(3), world.chance(3)];
    let rest = [
        views[0].is_none_or(|bias| bias.len == n),
        views[1].is_none_or(|residual| residual.len as u128 == product(&[m, n])),
    ];
    let lengths = product(&[m, k]) == a.len as u128
        && product(&[inner, n]) == b.len as u128
        && product(&[m, n]) == y.len as u128;
    let fits = k == inner && lengths && rest == [true; 2] && (k > 0 || y.len == 0);
    let needs = if y.dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    };
    let mut launch = vec![reads(a, needs), reads(b, needs), writes(y, needs)];
    launch.extend(views.iter().flatten().map(|seen| reads(*seen, needs)));
    Operation {
        text: format!(
            "gemm {a} {b} {y} [{m}, {k}|{inner}, {n}] transposed {flips:?} {:?} {:?}",
            tail.activation,
            views.map(|seen| seen.map(|seen| seen.to_string()))
        ),
        refused: unless(fits),
        launches: if y.len == 0 { vec![] } else { vec![launch] },
        given: [a, b, y]
            .into_iter()
            .chain(views.into_iter().flatten())
            .collect(),
        record: Box::new(move |plan| {
            let left = if flips[0] {
                Matrix::new(a.view, k, m).transpose()
            } else {
                Matrix::new(a.view, m, k)
            };
            let right = if flips[1] {
                Matrix::new(b.view, n, inner).transpose()
            } else {
                Matrix::new(b.view, inner, n)
            };
            plan.gemm(left, right, y.view, tail)
        }),
        step: Rc::new(move |space| {
            let (left, right) = (space.numbers(&a), space.numbers(&b));
            let [bias, residual] = views.map(|seen| seen.map(|seen| space.numbers(&seen)));
            let one = |place: usize| {
                let (row, col) = (place / n, place % n);
                let (row_at, col_at) = (
                    |i| if flips[0] { i * m + row } else { row * k + i },
                    |i| if flips[1] { col * k + i } else { i * n + col },
                );
                let product = dot((0..k).map(|i| Some((left[row_at(i)], right[col_at(i)]))))?;
                Some(ended(
                    product,
                    tail.activation,
                    known(&bias, col)?,
                    known(&residual, place)?,
                ))
            };
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// An element of an optional vector; none if it is present and unknown.
pub fn known(vector: &Option<Vec<Option<f64>>>, place: usize) -> Option<Option<f64>> {
    match vector {
        None => Some(None),
        Some(vector) => vector[place]
            .filter(|value| value.is_finite() && value.abs() < 1e15)
            .map(Some),
    }
}

fn matvec(world: &mut World, plan: usize) -> Operation {
    let dtype = world.float();
    let [m, k] = [world.below(20), 1 + world.below(30)];
    let (a, x, y) = (
        world.source(plan, dtype, m * k),
        world.source(plan, dtype, k),
        world.target(plan, dtype, m),
    );
    let (tail, views) = tail(world, plan, dtype, [m, m]);
    let (m, k) = (y.len, x.len);
    let fits = a.len as u128 == product(&[m, k])
        && views.iter().flatten().all(|seen| seen.len == m)
        && (m == 0 || k > 0);
    let needs = if y.dtype == DType::F64 {
        DType::F64
    } else {
        DType::F32
    };
    let launch = [reads(a, needs), reads(x, needs), writes(y, needs)]
        .into_iter()
        .chain(views.iter().flatten().map(|seen| reads(*seen, needs)))
        .collect();
    Operation {
        text: format!(
            "matvec {a} {x} {y} {:?} {:?}",
            tail.activation,
            views.map(|seen| seen.map(|seen| seen.to_string()))
        ),
        refused: unless(fits),
        launches: if m == 0 { vec![] } else { vec![launch] },
        given: [a, x, y]
            .into_iter()
            .chain(views.into_iter().flatten())
            .collect(),
        record: Box::new(move |plan| plan.matvec(a.view, x.view, y.view, tail)),
        step: Rc::new(move |space| {
            let (left, right) = (space.numbers(&a), space.numbers(&x));
            let [bias, residual] = views.map(|seen| seen.map(|seen| space.numbers(&seen)));
            let one = |row: usize| {
                let product = dot((0..k).map(|i| Some((left[row * k + i], right[i]))))?;
                Some(ended(
                    product,
                    tail.activation,
                    known(&bias, row)?,
                    known(&residual, row)?,
                ))
            };
            space.put_numbers(&y, (0..m).map(one).collect::<Vec<_>>());
        }),
    }
}

/// Matrices of f32 or of halves, in the fuzzer's model.
#[derive(Clone, Copy)]
struct Batch {
    seen: Seen,
    count: usize,
    rows: usize,
    cols: usize,
    flipped: bool,
    packing: Packing,
}

impl Batch {
    fn given(&self) -> Matrices {
        let (rows, cols) = if self.flipped {
            (self.cols, self.rows)
        } else {
            (self.rows, self.cols)
        };
        let matrices = match self.packing {
            Packing::F32 => Matrices::new(self.seen.view, self.count, rows, cols),
            Packing::Half(half) => Matrices::half(half, self.seen.view, self.count, rows, cols),
        };
        if self.flipped {
            matrices.transpose()
        } else {
            matrices
        }
    }

    fn fits(&self) -> bool {
        let elements = product(&[self.count, self.rows, self.cols]);
        let words = if self.packing == Packing::F32 {
            elements
        } else {
            elements.div_ceil(2)
        };
        words == self.seen.len as u128 && self.seen.dtype == self.packing.dtype()
    }

    /// The elements as numbers; halves are widened.
    fn numbers(&self, space: &Space<'_>) -> Vec<Option<f64>> {
        let Packing::Half(half) = self.packing else {
            return space.numbers(&self.seen);
        };
        let one = |word: Option<u32>| {
            let mut pair = [0.0f32; 2];
            word.map_or([None; 2], |word| {
                tectum::kernel::pack::unpack(half, &[word], 0, &mut pair);
                pair.map(|value| (!value.is_subnormal()).then_some(f64::from(value)))
            })
        };
        space
            .integers(&self.seen)
            .into_iter()
            .flat_map(one)
            .collect()
    }

    fn place(&self, matrix: usize, row: usize, col: usize) -> usize {
        let matrix = if self.count == 1 { 0 } else { matrix };
        matrix * self.rows * self.cols
            + if self.flipped {
                col * self.rows + row
            } else {
                row * self.cols + col
            }
    }
}

fn batched(world: &mut World, plan: usize) -> Operation {
    let packing = world.random.pick(&[
        Packing::F32,
        Packing::F32,
        Packing::Half(tectum::kernel::pack::Half::F16),
        Packing::Half(tectum::kernel::pack::Half::Bf16),
    ]);
    let count = 1 + world.below(3);
    let ([m, k, n], _) = world.sizes([0, 0, 0]);
    let mut one = |rows: usize, cols: usize| {
        let count = if world.chance(3) { 1 } else { count };
        let seen = world.source(plan, packing.dtype(), packing.words(count * rows * cols));
        let mut sizes = [count, rows, cols];
        world.distort(&mut sizes);
        let [count, rows, cols] = sizes;
        Batch {
            seen,
            count,
            rows,
            cols,
            flipped: world.chance(3),
            packing,
        }
    };
    let (a, b) = (one(m, k), one(k, n));
    let batch = if a.count == 1 { b.count } else { a.count };
    let y = world.target(plan, DType::F32, a.count.max(b.count).min(4) * m * n);
    let (m, k, n) = (a.rows, a.cols, b.cols);
    let shapes = k == b.rows
        && (b.count == batch || b.count == 1)
        && product(&[batch, m, n]) == y.len as u128;
    let fits = shapes && a.fits() && b.fits() && (k > 0 || y.len == 0);
    let dtype = packing.dtype();
    Operation {
        text: format!(
            "gemm_batched {packing:?} {} x [{m}, {k}] {} {} x [{}, {n}] {} {y} {:?}",
            a.count,
            a.seen,
            b.count,
            b.rows,
            b.seen,
            [a.flipped, b.flipped]
        ),
        refused: unless(fits),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![
                reads(a.seen, dtype),
                reads(b.seen, dtype),
                writes(y, DType::F32),
            ]]
        },
        given: vec![a.seen, b.seen, y],
        record: Box::new(move |plan| plan.gemm_batched(a.given(), b.given(), y.view)),
        step: Rc::new(move |space| {
            let (left, right) = (a.numbers(space), b.numbers(space));
            let one = |at: usize| {
                let (matrix, row, col) = (at / (m * n), at / n % m, at % n);
                dot((0..k).map(|i| {
                    Some((
                        left[a.place(matrix, row, i)],
                        right[b.place(matrix, i, col)],
                    ))
                }))
            };
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

/// Products of signed bytes: exact, modulo 2³².
fn bytes(world: &mut World, plan: usize) -> Operation {
    let is_vector = world.chance(2);
    let [m, k] = [1 + world.below(12), 1 + world.below(30)];
    let n = if is_vector { 1 } else { 1 + world.below(12) };
    let words = k.div_ceil(4);
    let (a, b, y) = (
        world.source(plan, DType::U32, m * words),
        world.source(plan, DType::U32, n * words),
        world.target(plan, DType::I32, m * n),
    );
    let mut sizes = [m, n, k];
    world.distort(&mut sizes);
    let [m, n, k] = if is_vector {
        [y.len, 1, b.len.saturating_mul(4)]
    } else {
        sizes
    };
    let words = k.div_ceil(4);
    let lengths = [
        (a, product(&[m, words])),
        (b, product(&[n, words])),
        (y, product(&[m, n])),
    ];
    let fits = lengths.iter().all(|(seen, len)| seen.len as u128 == *len) && (k > 0 || y.len == 0);
    Operation {
        text: format!(
            "{} {a} {b} {y} [{m}, {n}, {k}]",
            if is_vector { "matvec_i8" } else { "gemm_i8" }
        ),
        refused: unless(fits),
        launches: if y.len == 0 {
            vec![]
        } else {
            vec![vec![
                reads(a, DType::U32),
                reads(b, DType::U32),
                writes(y, DType::I32),
            ]]
        },
        given: vec![a, b, y],
        record: Box::new(move |plan| {
            if is_vector {
                plan.matvec_i8(a.view, b.view, y.view)
            } else {
                plan.gemm_i8(a.view, b.view, y.view, [m, n, k])
            }
        }),
        step: Rc::new(move |space| {
            let (left, right) = (space.integers(&a), space.integers(&b));
            let one = |at: usize| {
                let pairs = left[at / n * words..][..words]
                    .iter()
                    .zip(&right[at % n * words..][..words]);
                let sum = pairs.clone().try_fold(0i32, |sum, (a, b)| {
                    let (a, b) = (*a).zip(*b)?;
                    let terms = a
                        .to_le_bytes()
                        .into_iter()
                        .zip(b.to_le_bytes())
                        .map(|(a, b)| i32::from(a.cast_signed()) * i32::from(b.cast_signed()));
                    Some(terms.fold(sum, i32::wrapping_add))
                });
                sum.map_or(Word::Unknown, |sum| Word::Exact(sum.cast_unsigned()))
            };
            space.put(&y, &(0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

fn stencil(world: &mut World, plan: usize) -> Operation {
    let points = world.random.pick(&[Points::Seven, Points::TwentySeven]);
    let boundary = world.random.pick(&Boundary::ALL);
    let mut sizes = [(); 4].map(|()| 1 + world.below(4));
    let (len, channels) = (sizes.iter().product::<usize>(), sizes[3]);
    let (x, y) = (
        world.source(plan, DType::F32, len),
        world.target(plan, DType::F32, len),
    );
    let count = if world.chance(2) { 4 } else { 4 * channels };
    let weights = world.source(plan, DType::F32, count);
    world.distort(&mut sizes);
    let channels = sizes[3];
    let total = product(&sizes);
    let fits = x.len as u128 == total
        && y.len as u128 == total
        && (weights.len == 4 || weights.len as u128 == product(&[4, channels]));
    Operation {
        text: format!("stencil {points:?} {x} {weights} {y} {sizes:?} {boundary:?}"),
        refused: unless(fits),
        launches: if total == 0 {
            vec![]
        } else {
            vec![vec![
                reads(x, DType::F32),
                reads(weights, DType::F32),
                writes(y, DType::F32),
            ]]
        },
        given: vec![x, weights, y],
        record: Box::new(move |plan| {
            plan.stencil(points, x.view, weights.view, y.view, sizes, boundary)
        }),
        step: Rc::new(move |space| {
            let (values, factors) = (space.numbers(&x), space.numbers(&weights));
            let one = |at: usize| neighbours(points, boundary, sizes, at, &values, &factors);
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

fn neighbours(
    points: Points,
    boundary: Boundary,
    sizes: [usize; 4],
    at: usize,
    values: &[Option<f64>],
    factors: &[Option<f64>],
) -> Option<(f64, f64)> {
    let [nx, ny, nz, channels] = sizes;
    let (x, y, z, channel) = (
        at / (ny * nz * channels),
        at / (nz * channels) % ny,
        at / channels % nz,
        at % channels,
    );
    let per_channel = factors.len() != 4;
    let mut terms = Vec::new();
    for step in 0..27 {
        let moved = [step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1];
        let far = moved.iter().filter(|step| **step != 0).count();
        let class = match points {
            Points::Seven if far > 1 => continue,
            Points::Seven => moved
                .iter()
                .position(|step| *step != 0)
                .map_or(0, |axis| axis + 1),
            Points::TwentySeven => far,
        };
        let place =
            |at: usize, step: i32, size: usize| boundary.place(at as isize + step as isize, size);
        let factor = factors[if per_channel {
            class * channels + channel
        } else {
            class
        }];
        // Beyond a boundary of zeros there are zeros.
        let value = match (
            place(x, moved[0], nx),
            place(y, moved[1], ny),
            place(z, moved[2], nz),
        ) {
            (Some(x), Some(y), Some(z)) => values[((x * ny + y) * nz + z) * channels + channel],
            _ => Some(0.0),
        };
        let pair = all(&[value, factor])?;
        terms.push(pair[0] * pair[1]);
    }
    Some(sum(&terms))
}

fn attention(world: &mut World, plan: usize) -> Operation {
    let [batch, queries, keys] = [1 + world.below(2), 1 + world.below(5), 1 + world.below(9)];
    let (kv_heads, group, width) = (
        1 + world.below(2),
        1 + world.below(2),
        [1, 3, 8, 16][world.below(4)],
    );
    let mut sizes = [batch, queries, keys, kv_heads * group, kv_heads, width];
    let spare = world.below(4);
    let rows = [
        kv_heads * group * width + spare,
        kv_heads * width + spare,
        kv_heads * width + spare,
    ];
    let views = [
        batch * queries * rows[0],
        batch * keys * rows[1],
        batch * keys * rows[2],
    ]
    .map(|len| world.source(plan, DType::F32, len));
    let mask = world
        .chance(3)
        .then(|| world.source(plan, DType::F32, batch * keys));
    let y = world.target(plan, DType::F32, batch * queries * kv_heads * group * width);
    let causal = world.chance(2);
    world.distort(&mut sizes);
    let start = if world.chance(30) {
        world.extreme()
    } else {
        spare
    };
    let [batch, queries, keys, heads, kv_heads, width] = sizes;
    let given = AttentionSizes {
        batch,
        queries,
        keys,
        heads,
        kv_heads,
        width,
    };
    let fits = |place: usize, count: usize, heads: usize| {
        views[place].len as u128 == product(&[batch, count, rows[place]])
            && product(&[heads, width]).saturating_add(start as u128) <= rows[place] as u128
    };
    let operands = fits(0, queries, heads)
        && fits(1, keys, kv_heads)
        && fits(2, keys, kv_heads)
        && mask.is_none_or(|mask| mask.len as u128 == product(&[batch, keys]));
    let is_right = operands
        && y.len as u128 == product(&[batch, queries, heads, width])
        && kv_heads > 0
        && heads.is_multiple_of(kv_heads);
    let [q, k, v] = views;
    let launch: Vec<Bound> = [q, k, v]
        .map(|seen| reads(seen, DType::F32))
        .into_iter()
        .chain([writes(y, DType::F32)])
        .chain(mask.map(|mask| reads(mask, DType::F32)))
        .collect();
    let filled = vec![writes(y.as_words(), DType::U32)];
    Operation {
        text: format!(
            "attention {q} {k} {v} rows {rows:?} from {start} mask {:?} {y} {given:?} causal {causal}",
            mask.map(|mask| mask.to_string())
        ),
        refused: if width > 128 {
            Some(ErrorKind::Unsupported)
        } else {
            unless(is_right)
        },
        launches: if y.len == 0 {
            vec![]
        } else if keys == 0 {
            vec![filled]
        } else {
            vec![launch]
        },
        given: [q, k, v, y].into_iter().chain(mask).collect(),
        record: Box::new(move |plan| {
            let columns = [
                (q.view, rows[0], start),
                (k.view, rows[1], start),
                (v.view, rows[2], start),
            ];
            plan.attention(
                columns,
                mask.map(|mask| mask.view),
                y.view,
                given,
                0.5,
                causal,
            )
        }),
        step: Rc::new(move |space| {
            let operands = [q, k, v].map(|seen| space.numbers(&seen));
            let masks = mask.map(|mask| space.numbers(&mask));
            let one = |at: usize| attended(&operands, &masks, (given, rows, start, causal), at);
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

type Sizes = (AttentionSizes, [usize; 3], usize, bool);

fn attended(
    operands: &[Vec<Option<f64>>; 3],
    masks: &Option<Vec<Option<f64>>>,
    (sizes, rows, start, causal): Sizes,
    at: usize,
) -> Option<(f64, f64)> {
    let AttentionSizes {
        queries,
        keys,
        heads,
        kv_heads,
        width,
        ..
    } = sizes;
    let (row, head, col) = (at / (heads * width), at / width % heads, at % width);
    let (item, query, served) = (row / queries, row % queries, head / (heads / kv_heads));
    // Known: a non-finite value, key or mask propagates through a weight of zero, even if the query
    // does not see the key.
    let is_finite = |key: usize| {
        let row = item * keys + key;
        let of = |operand: usize, col: usize| {
            operands[operand][row * rows[operand] + start + served * width + col]
                .is_some_and(f64::is_finite)
        };
        of(2, col)
            && (0..width).all(|i| of(1, i))
            && masks
                .as_ref()
                .is_none_or(|masks| masks[row].is_some_and(f64::is_finite))
    };
    if !(0..keys).all(is_finite) {
        return None;
    }
    let seen = (0..keys).filter(|&key| !causal || key + queries <= query + keys);
    let mut scores = Vec::new();
    for key in seen {
        let key_row = item * keys + key;
        let (score, _) = dot((0..width).map(|i| {
            Some((
                operands[0][row * rows[0] + start + head * width + i],
                operands[1][key_row * rows[1] + start + served * width + i],
            ))
        }))?;
        let value = operands[2][key_row * rows[2] + start + served * width + col]?;
        let added = known(masks, key_row)?.unwrap_or(0.0);
        scores.push((0.5 * score + added, value));
    }
    mixed(&scores, width)
}

/// Values weighted by the softmax of their scores, which are products over this many columns; NaN
/// without values.
pub fn mixed(scores: &[(f64, f64)], width: usize) -> Option<(f64, f64)> {
    if scores
        .iter()
        .any(|(score, value)| score.abs() > 1e4 || !value.is_finite() || value.abs() > 1e4)
    {
        return None;
    }
    if scores.is_empty() {
        return Some((f64::NAN, 0.0));
    }
    let most = scores
        .iter()
        .map(|(score, _)| *score)
        .fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = scores
        .iter()
        .map(|(score, _)| (score - most).exp())
        .collect();
    let total: f64 = weights.iter().sum();
    let value = scores
        .iter()
        .zip(&weights)
        .map(|((_, value), weight)| value * weight)
        .sum::<f64>()
        / total;
    let largest = scores
        .iter()
        .map(|(score, _)| score.abs())
        .fold(0.0, f64::max);
    let magnitude = scores
        .iter()
        .map(|(_, value)| value.abs())
        .fold(0.0, f64::max);
    Some((
        value,
        f64::from(f32::EPSILON) * magnitude * (64.0 + 16.0 * largest + (width * 4) as f64),
    ))
}

fn rotary(world: &mut World, plan: usize) -> Operation {
    let (count, repeats, heads, half) = (
        1 + world.below(4),
        1 + world.below(3),
        1 + world.below(3),
        1 + world.below(5),
    );
    let mut sizes = [2 * half, heads];
    let len = count * repeats * heads * 2 * half;
    let (x, y) = (
        world.source(plan, DType::F32, len),
        world.target(plan, DType::F32, len),
    );
    let positions = world.indices(plan, count, 50);
    world.distort(&mut sizes);
    let [width, heads] = sizes;
    let cols = product(&[width, heads]);
    let is_whole = cols > 0 && (x.len as u128).is_multiple_of(cols) || x.len == 0;
    let rows = (x.len as u128).checked_div(cols).unwrap_or(0);
    let fits = is_whole
        && x.len == y.len
        && positions.len > 0
        && rows.is_multiple_of(positions.len as u128);
    let right = fits && width.is_multiple_of(2) && width > 0 && width <= 512;
    Operation {
        text: format!("rotary {x} {positions} {y} {heads} of {width}"),
        refused: unless(right),
        launches: if x.len == 0 {
            vec![]
        } else {
            vec![vec![
                reads(x, DType::F32),
                reads(positions, DType::U32),
                writes(y, DType::F32),
            ]]
        },
        given: vec![x, positions, y],
        record: Box::new(move |plan| {
            plan.rotary(x.view, positions.view, y.view, width, heads, 100.0)
        }),
        step: Rc::new(move |space| {
            let (values, places) = (space.numbers(&x), space.integers(&positions));
            let one = |at: usize| {
                let (row, col) = (at / (width * heads), at % width);
                let (pair, is_second) = (col % (width / 2), col >= width / 2);
                let first = at - col + pair;
                let position =
                    f64::from(places[row % places.len()].filter(|place| *place <= 10_000)?);
                let frequency = f64::from(100f64.powf(-(pair as f64) / (width / 2) as f64) as f32);
                let (sin, cos) = (position * frequency).sin_cos();
                let known = all(&[values[first], values[first + width / 2]])?;
                let (a, b) = (known[0], known[1]);
                let value = if is_second {
                    a * sin + b * cos
                } else {
                    a * cos - b * sin
                };
                Some((
                    value,
                    f64::from(f32::EPSILON) * (a.abs() + b.abs()) * (16.0 + 4.0 * position),
                ))
            };
            space.put_numbers(&y, (0..y.len).map(one).collect::<Vec<_>>());
        }),
    }
}

tectum::kernel_arguments! {
    /// A typical user kernel: `y[i] = factor · x[i] + 7`, modulo 2³².
    struct Affine { read x: u32, write y: u32; n: usize, factor: u32 }
}

static AFFINE: LazyLock<TypedKernel<Affine>> = LazyLock::new(|| {
    let body = "@compute @workgroup_size(256) fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
        for (var i = id.x; i < params.n; i += groups.x * 256u) { y[i] = params.factor * x[i] + 7u; } }";
    let kernel = Affine::define("affine_of_a_user")
        .body(body)
        .loops(|Affine { n, .. }, groups| loops_over(n as u64, groups.saturating_mul(256), 0));
    let kernel = kernel.native(|_, Affine { x, y, n, factor }| {
        y[..n]
            .iter_mut()
            .zip(x)
            .for_each(|(y, x)| *y = factor.wrapping_mul(*x).wrapping_add(7))
    });
    kernel.expect("a valid kernel")
});

static COPY: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    tectum::operation::kernels()
        .into_iter()
        .find(|kernel| kernel.name() == "copy_u32")
        .expect("a built-in kernel")
});

fn launch(world: &mut World, plan: usize) -> Operation {
    let len = 1 + world.below(200);
    let (x, y) = (
        world.source(plan, DType::U32, len),
        world.target(plan, DType::U32, len),
    );
    let factor = world.random.bits() as u32;
    // A parameter that a kernel reads beyond its bindings is the kernel's own mistake.
    let n = x.len.min(y.len) as u32;
    let groups = world
        .random
        .pick(&[1u32, 1, 1, 2, 3, 65_535, 0, 65_536, u32::MAX]);
    let views = match world.random.below(20) {
        0 => vec![x.view],
        1 => vec![x.view, y.view, x.view],
        _ => vec![x.view, y.view],
    };
    let params = if world.chance(20) {
        vec![n]
    } else {
        vec![n, factor]
    };
    // A kernel of the crate does not check its indices, so only its own operation may record it.
    let is_built_in = world.chance(15);
    let is_typed = world.chance(2);
    let fits =
        (1..=65_535).contains(&groups) && views.len() == 2 && params.len() == 2 && !is_built_in;
    Operation {
        text: format!(
            "launch affine {x} {y} {} views, {params:?}, {groups} groups, built in {is_built_in}",
            views.len()
        ),
        refused: unless(fits),
        launches: vec![vec![reads(x, DType::U32), writes(y, DType::U32)]],
        given: vec![x, y],
        record: Box::new(move |plan| match (&views[..], &params[..], is_built_in) {
            (&[x, y], &[n, factor], false) if is_typed => plan.launch(
                &AFFINE,
                Affine {
                    x,
                    y,
                    n: n as usize,
                    factor,
                },
                groups,
            ),
            (_, _, is_built_in) => plan.launch_dynamic(
                if is_built_in { &COPY } else { &AFFINE },
                &views,
                &params,
                groups,
            ),
        }),
        step: Rc::new(move |space| {
            let mut words = space.words(&y);
            let results = space.integers(&x).into_iter().map(|x| {
                x.map_or(Word::Unknown, |x| {
                    Word::Exact(factor.wrapping_mul(x).wrapping_add(7))
                })
            });
            words
                .iter_mut()
                .zip(results)
                .for_each(|(word, result)| *word = result);
            space.put(&y, &words);
        }),
    }
}

/// `y[i] = 3·x[i] + 7`, modulo 2³², as a program.
static MAP: LazyLock<Checked> = LazyLock::new(|| {
    let text = "buffer x: u32 read\nbuffer y: u32 write\nldg.u32 r0, [x]\nmov_imm.u32 r1, 3\nmul.u32 r0, r0, r1\nmov_imm.u32 r1, 7\nadd.u32 r0, r0, r1\nstg.u32 [y], r0";
    Program::parse(text)
        .and_then(|program| program.check())
        .expect("a valid program")
});

/// The operation of [`MAP`] for lanes of a length.
pub fn map_program(x: Seen, y: Seen, lanes: u32) -> Operation {
    let blocks = |seen: Seen| seen.words().len().div_ceil(64) as u128;
    let fits = x.words().len() == y.words().len()
        && blocks(x) == u128::from(lanes.div_ceil(64))
        && [x, y].iter().all(|seen| seen.dtype.bytes() == 4);
    Operation {
        text: format!("program map {x} {y} {lanes} lanes"),
        refused: unless(fits),
        launches: vec![vec![
            reads(x.as_words(), DType::U32),
            writes(y.as_words(), DType::U32),
        ]],
        given: vec![x, y],
        record: Box::new(move |plan| {
            MAP.record(
                plan,
                &LaunchConfig::linear(lanes, 64),
                &[x.view.into(), y.view.into()],
                Bounds::Proven,
            )
            .map(|_| ())
        }),
        step: Rc::new(move |space| {
            let words = space.integers(&x).into_iter().map(|x| {
                x.map_or(Word::Unknown, |x| {
                    Word::Exact(x.wrapping_mul(3).wrapping_add(7))
                })
            });
            space.put(&y, &words.collect::<Vec<_>>());
        }),
    }
}
