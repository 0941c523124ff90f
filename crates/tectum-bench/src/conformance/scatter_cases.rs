//! Cases of scatters of rows, strided stores and strided copies of many axes.

use tectum::{DType, ScatterUpdate, Strided};

use super::{Case, Data, Expected, Output, Seed, Suite};

/// Half a unit in the last place: the relative error of one rounding.
const ROUNDING: f64 = 1.0 / 16_777_216.0;

const UPDATES: [ScatterUpdate; 5] = [
    ScatterUpdate::Assign,
    ScatterUpdate::Add,
    ScatterUpdate::Mul,
    ScatterUpdate::Max,
    ScatterUpdate::Min,
];

pub(super) fn suites() -> Vec<Suite> {
    vec![
        Suite::new("scatter", |seed: &mut Seed| {
            shapes(seed)
                .into_iter()
                .flat_map(|shape| UPDATES.map(|how| (shape, how)))
                .map(|(shape, how)| floats(seed, shape, how))
                .collect()
        }),
        Suite::new("scatter_i32", |seed: &mut Seed| {
            shapes(seed)
                .into_iter()
                .flat_map(|shape| UPDATES.map(|how| (shape, how)))
                .map(|(shape, how)| integers(seed, shape, how))
                .collect()
        }),
        Suite::new("copy_strided_8", |seed: &mut Seed| {
            strided_shapes()
                .into_iter()
                .map(|axes| strided_copy(seed, axes))
                .collect()
        }),
        Suite::new("store_strided", |seed: &mut Seed| {
            strided_shapes()
                .into_iter()
                .map(|axes| strided_store(seed, axes))
                .collect()
        }),
    ]
}

/// Rows and columns of the table, and number of indices.
fn shapes(seed: &mut Seed) -> Vec<[usize; 3]> {
    vec![
        [5, 4, 0],
        [1, 1, 1],
        [1, 3, 20],
        [7, 1, 1000],
        [100, 64, 33],
        [3, 5, 2000],
        // More updates than one launch has.
        [50, 3, 9000],
        [50_000, 1, 300],
        [seed.size(1, 500), seed.size(1, 300), seed.size(1, 500)],
    ]
}

/// One index in eleven is beyond the table, some far beyond or negative.
fn indices(seed: &mut Seed, [rows, _, count]: [usize; 3]) -> Vec<u32> {
    let mut index = || {
        let word = seed.word();
        if word.is_multiple_of(11) {
            rows as u32 + (word >> (word % 32)) / 2
        } else {
            word % rows as u32
        }
    };
    let mut indices: Vec<u32> = (0..count).map(|_| index()).collect();
    if let Some(last) = indices.get_mut(1) {
        *last = u32::MAX;
    }
    indices
}

/// Applies the updates in order.
fn scattered<T: Copy>(
    y: &mut [T],
    indices: &[u32],
    updates: &[T],
    cols: usize,
    step: impl Fn(T, T) -> T,
) {
    for (updates, &index) in updates.chunks(cols).zip(indices) {
        let Some(row) = y.chunks_mut(cols).nth(index as usize) else {
            continue;
        };
        row.iter_mut()
            .zip(updates)
            .for_each(|(y, &update)| *y = step(*y, update));
    }
}

/// A value of the reference, and the sum of the magnitudes that were added.
#[derive(Clone, Copy)]
struct Near {
    value: f64,
    size: f64,
    steps: f64,
}

fn floats(seed: &mut Seed, shape: [usize; 3], how: ScatterUpdate) -> Case {
    let [rows, cols, count] = shape;
    let (low, high) = if how == ScatterUpdate::Mul {
        (0.9, 1.1)
    } else {
        (-2.0, 2.0)
    };
    let before = seed.floats(rows * cols, low, high);
    let mut updates = seed.floats(count * cols, low, high);
    if how != ScatterUpdate::Mul {
        updates.iter_mut().step_by(97).for_each(|x| *x = f32::NAN);
    }
    let indices = indices(seed, shape);
    let near = |x: &f32| Near {
        value: f64::from(*x),
        size: f64::from(*x).abs(),
        steps: 0.0,
    };
    let mut expected: Vec<Near> = before.iter().map(near).collect();
    scattered(
        &mut expected,
        &indices,
        &updates.iter().map(near).collect::<Vec<_>>(),
        cols,
        |a, b| {
            let is_nan = a.value.is_nan() || b.value.is_nan();
            let (value, size, steps) = match how {
                ScatterUpdate::Assign => (b.value, 0.0, 0.0),
                ScatterUpdate::Add => (a.value + b.value, a.size + b.size, a.steps + 1.0),
                ScatterUpdate::Mul => (a.value * b.value, (a.value * b.value).abs(), a.steps + 1.0),
                _ if is_nan => (f64::NAN, 0.0, 0.0),
                ScatterUpdate::Max => (a.value.max(b.value), 0.0, 0.0),
                ScatterUpdate::Min => (a.value.min(b.value), 0.0, 0.0),
            };
            Near { value, size, steps }
        },
    );
    let expected = expected
        .into_iter()
        .map(|Near { value, size, steps }| Expected {
            value,
            bound: steps * ROUNDING * size,
        })
        .collect();
    let inputs = vec![Data::F32(before), Data::U32(indices), Data::F32(updates)];
    Case::new(
        format!("{how:?} {shape:?}"),
        inputs,
        vec![Output::Near(expected)],
        move |plan, x, y| {
            plan.copy(x[0], y[0])?;
            plan.scatter(x[1], x[2], y[0], how)
        },
    )
}

fn integers(seed: &mut Seed, shape: [usize; 3], how: ScatterUpdate) -> Case {
    let [rows, cols, count] = shape;
    let [before, updates] =
        [rows * cols, count * cols].map(|n| (0..n).map(|_| seed.word()).collect::<Vec<u32>>());
    let indices = indices(seed, shape);
    let mut expected = before.clone();
    scattered(&mut expected, &indices, &updates, cols, |a, b| {
        let [x, y] = [a, b].map(|word| i64::from(word as i32));
        match how {
            ScatterUpdate::Assign => b,
            ScatterUpdate::Add => (x + y) as u32,
            ScatterUpdate::Mul => (x * y) as u32,
            ScatterUpdate::Max => x.max(y) as u32,
            ScatterUpdate::Min => x.min(y) as u32,
        }
    });
    let inputs = [before, indices, updates].map(Data::U32).into();
    Case::new(
        format!("{how:?} {shape:?}"),
        inputs,
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| {
            let integers = |view: tectum::View| view.reinterpret(DType::I32);
            plan.copy(x[0], y[0])?;
            plan.scatter(integers(x[1]), integers(x[2]), integers(y[0]), how)
        },
    )
}

/// Sizes of axes and the order in which a strided array has them, innermost last; gaps follow some
/// of them.
fn strided_shapes() -> Vec<Vec<Strided>> {
    let arrays: [(&[usize], &[usize], usize); 12] = [
        (&[], &[], 0),
        (&[1], &[0], 3),
        (&[0, 4], &[0, 1], 0),
        (&[1000], &[0], 0),
        (&[1000], &[0], 1),
        (&[30, 40], &[1, 0], 0),
        (&[7, 64, 33], &[0, 1, 2], 5),
        (&[7, 1, 5, 9], &[3, 2, 1, 0], 0),
        (&[2, 3, 4, 5, 6], &[4, 3, 2, 1, 0], 1),
        (&[3, 2, 3, 2, 3, 2], &[0, 2, 4, 1, 3, 5], 0),
        (&[2, 3, 2, 3, 2, 3, 2, 3], &[7, 0, 6, 1, 5, 2, 4, 3], 2),
        (
            &[2, 1, 2, 2, 1, 2, 1, 2, 2, 1, 2, 5],
            &[11, 0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9],
            1,
        ),
    ];
    let axes = |(sizes, order, gap): (&[usize], &[usize], usize)| {
        let mut axes: Vec<Strided> = sizes
            .iter()
            .map(|&size| Strided { size, stride: 0 })
            .collect();
        let mut stride = 1;
        for &axis in order.iter().rev() {
            axes[axis].stride = stride;
            stride *= sizes[axis].max(1);
            stride += gap;
        }
        axes
    };
    arrays.into_iter().map(axes).collect()
}

/// The place of each index, in order, and the first place after all.
fn places(first: usize, axes: &[Strided]) -> (Vec<usize>, usize) {
    let mut places = vec![first];
    for axis in axes {
        places = places
            .iter()
            .flat_map(|place| (0..axis.size).map(move |index| place + index * axis.stride))
            .collect();
    }
    let end = places.iter().max().map_or(first, |last| last + 1);
    (places, end)
}

fn strided_copy(seed: &mut Seed, mut axes: Vec<Strided>) -> Case {
    // Every second array has a repeated axis.
    if let Some(axis) = axes.get_mut(1).filter(|_| seed.word().is_multiple_of(2)) {
        axis.stride = 0;
    }
    let first = seed.size(0, 70);
    let (places, end) = places(first, &axes);
    let x: Vec<u32> = (0..end).map(|_| seed.word()).collect();
    let expected = places.iter().map(|place| x[*place]).collect();
    Case::new(
        format!("{axes:?} from {first}"),
        vec![Data::U32(x)],
        vec![Output::Exact(Data::U32(expected))],
        move |plan, x, y| plan.copy_strided(x[0], first, &axes, y[0]),
    )
}

fn strided_store(seed: &mut Seed, axes: Vec<Strided>) -> Case {
    let first = seed.size(0, 70);
    let (places, end) = places(first, &axes);
    let x: Vec<u32> = places.iter().map(|_| seed.word()).collect();
    let before: Vec<u32> = (0..end + seed.size(0, 70)).map(|_| seed.word()).collect();
    let mut expected = before.clone();
    places
        .iter()
        .zip(&x)
        .for_each(|(place, word)| expected[*place] = *word);
    Case::new(
        format!("{axes:?} from {first}"),
        vec![Data::U32(x)],
        vec![Output::ExactInPlace(before, expected)],
        move |plan, x, y| plan.store_strided(x[0], first, &axes, y[0]),
    )
}
