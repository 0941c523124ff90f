//! The rows of the core suite: one or more for every kernel.

use tectum::operation::elementwise::{Arity, OPS};
use tectum::{
    Activation, Boundary, DType, GemmEpilogue, Half, Matrices, Matrix, PlanBuilder, Points, Result,
    View,
};
use tectum_programs::Chain;

use super::{Roofline, Work};

const F: DType = DType::F32;
const U: DType = DType::U32;
const I: DType = DType::I32;
const D: DType = DType::F64;

fn memory(
    name: &'static str,
    shape: String,
    bytes: usize,
    operands: Vec<(DType, usize)>,
    record: impl Fn(&mut PlanBuilder, &[View]) -> Result<()> + 'static,
) -> Work {
    Work {
        name,
        shape,
        roofline: Roofline::Copy,
        amount: bytes as f64,
        operands,
        below: 2,
        record: Box::new(record),
    }
}

/// Every row; a software device gets a sixteenth of the elements.
pub(super) fn rows(software: bool) -> Vec<Work> {
    let n = if software { 1 << 20 } else { 16 << 20 };
    let mut rows = elementwise(n);
    rows.extend(reductions(n));
    rows.extend(selections(n));
    rows.extend(products(if software { 512 } else { 1024 }));
    rows.extend(random(n));
    rows.extend(normalizations(n));
    rows.extend(moves(n));
    rows.push(chain(n));
    rows.extend(cached(n / 16));
    rows.extend(narrow_products(if software { 256 } else { 1024 }));
    rows.extend(stencils(if software { 16 } else { 32 }));
    rows.extend(super::convolution_rows::core_rows());
    rows.extend(doubles(n / 2, if software { 256 } else { 1024 }));
    rows
}

fn elementwise(n: usize) -> Vec<Work> {
    let mut rows = vec![
        memory("fill", format!("n{n}"), 4 * n, vec![(U, n)], |plan, v| {
            plan.fill(v[0], 7)
        }),
        memory(
            "copy",
            format!("n{n}"),
            8 * n,
            vec![(U, n), (U, n)],
            |plan, v| plan.copy(v[0], v[1]),
        ),
    ];
    rows.extend(OPS.iter().map(|op| match op.arity {
        Arity::Unary => memory(
            op.name,
            format!("n{n}"),
            8 * n,
            vec![(F, n), (F, n)],
            |plan, v| plan.unary(op.name, v[0], v[1]),
        ),
        Arity::Binary => memory(
            op.name,
            format!("n{n}"),
            12 * n,
            vec![(F, n); 3],
            |plan, v| plan.binary(op.name, v[0], v[1], v[2]),
        ),
    }));
    rows
}

fn reductions(n: usize) -> Vec<Work> {
    let (rows, cols) = (n / 1024, 1024);
    vec![
        memory(
            "sum",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (F, 1)],
            move |plan, v| plan.sum(v[0], v[1], 1, n),
        ),
        memory(
            "sum_columns",
            format!("{rows}x{cols}"),
            4 * n,
            vec![(F, n), (F, cols)],
            move |plan, v| plan.sum_columns(v[0], v[1], rows, cols),
        ),
        memory(
            "max",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (F, 1)],
            move |plan, v| plan.max(v[0], v[1], 1, n),
        ),
        memory(
            "argmax",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (U, 1)],
            move |plan, v| plan.argmax(v[0], v[1], 1, n),
        ),
        memory(
            "softmax",
            format!("{rows}x{cols}"),
            8 * n,
            vec![(F, n), (F, n)],
            move |plan, v| plan.softmax(v[0], v[1], rows, cols, 1.0),
        ),
    ]
}

fn selections(n: usize) -> Vec<Work> {
    vec![
        memory(
            "exclusive_scan",
            format!("n{n}"),
            8 * n,
            vec![(U, n), (U, n), (U, 1)],
            |plan, v| plan.exclusive_scan(v[0], v[1], v[2]),
        ),
        memory(
            "compact",
            format!("n{n}"),
            8 * n,
            vec![(U, n), (U, n), (U, 1)],
            |plan, v| plan.compact(v[0], v[1], v[2]),
        ),
        memory(
            "top_k",
            format!("1x{n}.k64"),
            4 * n,
            vec![(F, n), (F, 64), (U, 64)],
            |plan, v| plan.top_k(v[0], v[1], v[2], 1, 64),
        ),
    ]
}

fn products(side: usize) -> Vec<Work> {
    let tails = [(false, false), (true, false), (false, true), (true, true)];
    let tail = |(bias, residual): (bool, bool), v: &[View]| GemmEpilogue {
        bias: bias.then_some(v[3]),
        activation: if bias {
            Activation::Tanh
        } else {
            Activation::None
        },
        residual: residual.then_some(v[4]),
    };
    let suffix = |(bias, residual): (bool, bool)| match (bias, residual) {
        (false, false) => "",
        (true, false) => ".bias_tanh",
        (false, true) => ".residual",
        (true, true) => ".bias_tanh_residual",
    };
    let area = side * side;
    let gemm = tails.map(|kind| Work {
        name: "gemm",
        shape: format!("{side}x{side}x{side}{}", suffix(kind)),
        roofline: Roofline::Gemm,
        amount: 2.0 * (side as f64).powi(3),
        operands: vec![(F, area), (F, area), (F, area), (F, side), (F, area)],
        below: 2,
        record: Box::new(move |plan, v| {
            plan.gemm(
                Matrix::new(v[0], side, side),
                Matrix::new(v[1], side, side),
                v[2],
                tail(kind, v),
            )
        }),
    });
    let long = 4 * side;
    let operands = vec![(F, long * long), (F, long), (F, long), (F, long), (F, long)];
    let matvec = tails.map(|kind| {
        let shape = format!("{long}x{long}{}", suffix(kind));
        memory(
            "matvec",
            shape,
            4 * long * long,
            operands.clone(),
            move |plan, v| plan.matvec(v[0], v[1], v[2], tail(kind, v)),
        )
    });
    gemm.into_iter().chain(matvec).collect()
}

fn random(n: usize) -> Vec<Work> {
    vec![
        memory(
            "random_bits",
            format!("n{n}"),
            4 * n,
            vec![(U, 4), (U, n)],
            |plan, v| plan.random_bits(v[0], v[1]),
        ),
        memory(
            "uniform",
            format!("n{n}"),
            4 * n,
            vec![(U, 4), (F, n)],
            |plan, v| plan.uniform(v[0], v[1]),
        ),
        memory(
            "normal",
            format!("n{n}"),
            4 * n,
            vec![(U, 4), (F, n)],
            |plan, v| plan.normal(v[0], v[1]),
        ),
        memory(
            "adamw",
            format!("n{}", n / 4),
            7 * n,
            vec![(F, 4), (F, n / 4), (F, n / 4), (F, n / 4), (F, n / 4)],
            |plan, v| plan.adamw(v[0], v[1], [v[2], v[3], v[4]], 0.9, 0.999),
        ),
    ]
}

fn normalizations(n: usize) -> Vec<Work> {
    let (rows, cols) = (n / 1024, 1024);
    let shape = format!("{rows}x{cols}");
    let vectors = vec![(F, n), (F, rows), (F, rows)];
    vec![
        memory(
            "min",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (F, 1)],
            move |plan, v| plan.min(v[0], v[1], 1, n),
        ),
        memory(
            "mean",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (F, 1)],
            move |plan, v| plan.mean(v[0], v[1], 1, n),
        ),
        memory("variance", shape.clone(), 4 * n, vectors, move |plan, v| {
            plan.variance(v[0], v[1], v[2], rows, cols, 0)
        }),
        memory(
            "variance",
            format!("1x{n}"),
            4 * n,
            vec![(F, n), (F, 1), (F, 1)],
            move |plan, v| plan.variance(v[0], v[1], v[2], 1, n, 1),
        ),
        memory(
            "layer_norm",
            shape.clone(),
            8 * n,
            vec![(F, n), (F, cols), (F, cols), (F, n)],
            move |plan, v| plan.layer_norm(v[0], [v[1], v[2]], v[3], 1e-5),
        ),
        memory(
            "rms_norm",
            shape,
            8 * n,
            vec![(F, n), (F, cols), (F, n)],
            move |plan, v| plan.rms_norm(v[0], v[1], v[2], 1e-5),
        ),
    ]
}

fn moves(n: usize) -> Vec<Work> {
    let (rows, cols) = (n / 64, 64);
    let mut moves: Vec<Work> = [(F, I), (F, U), (I, F), (U, F)]
        .into_iter()
        .map(|(from, to)| {
            memory(
                "cast",
                format!("{}_{}.n{n}", from.wgsl(), to.wgsl()),
                8 * n,
                vec![(from, n), (to, n)],
                |plan, v| plan.cast(v[0], v[1]),
            )
        })
        .collect();
    for half in [Half::F16, Half::Bf16] {
        let shape = |from: &str, to: &str| format!("{from}_{to}.n{n}");
        moves.push(memory(
            "cast",
            shape("f32", half.name()),
            6 * n,
            vec![(F, n), (U, n / 2)],
            move |plan, v| plan.cast_to_half(half, v[0], v[1]),
        ));
        moves.push(memory(
            "cast",
            shape(half.name(), "f32"),
            6 * n,
            vec![(U, n / 2), (F, n)],
            move |plan, v| plan.cast_from_half(half, v[0], v[1]),
        ));
    }
    moves.push(memory(
        "transpose",
        format!("{}x1024", n / 1024),
        8 * n,
        vec![(U, n), (U, n)],
        move |plan, v| plan.transpose(v[0], v[1], [1, n / 1024, 1024]),
    ));
    let operands = vec![(U, n), (U, rows), (U, n), (U, 1)];
    let gather = memory(
        "gather",
        format!("{rows}x{cols}"),
        8 * n,
        operands.clone(),
        move |plan, v| plan.gather(v[0], v[1], v[2], v[3], cols),
    );
    let scatter = memory(
        "scatter_add",
        format!("{rows}x{cols}"),
        12 * n,
        operands,
        move |plan, v| plan.scatter_add(v[0], v[1], v[2], v[3], cols),
    );
    // Fewer rows: on a GPU the work grows with their square, up to 4,096.
    let (few, classes) = (rows.min(8192), [(U, rows), (F, n)]);
    let operands = vec![(F, few * cols), (U, few), (F, few * cols)];
    let segments = memory(
        "segment_sum",
        format!("{few}x{cols}"),
        8 * few * cols,
        operands,
        move |plan, v| plan.segment_sum(v[0], v[1], v[2], cols),
    );
    let one_hot = memory(
        "one_hot",
        format!("{rows}x{cols}"),
        4 * n,
        classes.into(),
        move |plan, v| plan.one_hot(v[0], v[1], cols),
    );
    // Rows anywhere in the table.
    moves.extend([gather, scatter].map(|work| Work {
        below: rows as u32,
        ..work
    }));
    moves.push(Work {
        below: few as u32,
        ..segments
    });
    moves.push(Work {
        below: cols as u32,
        ..one_hot
    });
    moves
}

fn narrow_products(side: usize) -> Vec<Work> {
    let area = side * side;
    let product = |name: &'static str,
                   shape: String,
                   operands: Vec<(DType, usize)>,
                   record: Box<super::Record>| Work {
        name,
        shape,
        roofline: if name == "gemm_i8" {
            Roofline::GemmI8
        } else {
            Roofline::Gemm
        },
        amount: 2.0 * (side as f64).powi(3),
        operands,
        below: 2,
        record,
    };
    let cube = format!("{side}x{side}x{side}");
    // The same operations in 64 products of a quarter of the side.
    let (batch, part) = (64, side / 4);
    let batched = move |plan: &mut PlanBuilder, v: &[View]| {
        plan.gemm_batched(
            Matrices::new(v[0], batch, part, part),
            Matrices::new(v[1], batch, part, part),
            v[2],
        )
    };
    let mut products = vec![product(
        "gemm_batched",
        format!("{batch}x{part}x{part}x{part}"),
        vec![(F, batch * part * part); 3],
        Box::new(batched),
    )];
    for half in [Half::F16, Half::Bf16] {
        let record = move |plan: &mut PlanBuilder, v: &[View]| {
            plan.gemm_batched(
                Matrices::half(half, v[0], 1, side, side),
                Matrices::half(half, v[1], 1, side, side),
                v[2],
            )
        };
        let operands = vec![(U, area / 2), (U, area / 2), (F, area)];
        products.push(product(
            "gemm_batched",
            format!("{}.{cube}", half.name()),
            operands,
            Box::new(record),
        ));
    }
    let record =
        move |plan: &mut PlanBuilder, v: &[View]| plan.gemm_i8(v[0], v[1], v[2], [side; 3]);
    products.push(product(
        "gemm_i8",
        cube,
        vec![(U, area / 4), (U, area / 4), (I, area)],
        Box::new(record),
    ));
    let long = 4 * side;
    let operands = vec![(U, long * long / 4), (U, long / 4), (I, long)];
    products.push(memory(
        "matvec_i8",
        format!("{long}x{long}"),
        long * long,
        operands,
        |plan, v| plan.matvec_i8(v[0], v[1], v[2]),
    ));
    products
}

fn stencils(side: usize) -> Vec<Work> {
    let (sizes, n) = ([side, side, side, 64], side * side * side * 64);
    let names = [
        ("stencil7", Points::Seven),
        ("stencil27", Points::TwentySeven),
    ];
    let row = |(name, points)| {
        let operands = vec![(F, n), (F, 4), (F, n)];
        memory(
            name,
            format!("{side}x{side}x{side}x64"),
            8 * n,
            operands,
            move |plan, v| plan.stencil(points, v[0], v[1], v[2], sizes, Boundary::Periodic),
        )
    };
    names.into_iter().map(row).collect()
}

/// The families that exist on f64, with as many bytes as on f32.
fn doubles(n: usize, side: usize) -> Vec<Work> {
    let (rows, cols) = (n / 1024, 1024);
    let shape = |shape: String| format!("f64.{shape}");
    let mut doubles: Vec<Work> = OPS
        .iter()
        .map(|op| match op.arity {
            Arity::Unary => memory(
                op.name,
                shape(format!("n{n}")),
                16 * n,
                vec![(D, n); 2],
                |plan, v| plan.unary(op.name, v[0], v[1]),
            ),
            Arity::Binary => memory(
                op.name,
                shape(format!("n{n}")),
                24 * n,
                vec![(D, n); 3],
                |plan, v| plan.binary(op.name, v[0], v[1], v[2]),
            ),
        })
        .collect();
    let row = || vec![(D, n), (D, 1)];
    doubles.push(memory(
        "sum",
        shape(format!("1x{n}")),
        8 * n,
        row(),
        move |plan, v| plan.sum(v[0], v[1], 1, n),
    ));
    doubles.push(memory(
        "max",
        shape(format!("1x{n}")),
        8 * n,
        row(),
        move |plan, v| plan.max(v[0], v[1], 1, n),
    ));
    doubles.push(memory(
        "min",
        shape(format!("1x{n}")),
        8 * n,
        row(),
        move |plan, v| plan.min(v[0], v[1], 1, n),
    ));
    doubles.push(memory(
        "mean",
        shape(format!("1x{n}")),
        8 * n,
        row(),
        move |plan, v| plan.mean(v[0], v[1], 1, n),
    ));
    let columns = vec![(D, n), (D, cols)];
    doubles.push(memory(
        "sum_columns",
        shape(format!("{rows}x{cols}")),
        8 * n,
        columns,
        move |plan, v| plan.sum_columns(v[0], v[1], rows, cols),
    ));
    for work in products(side) {
        let operands = work.operands.iter().map(|&(_, len)| (D, len)).collect();
        // A product's amount counts operations, a matrix-vector product's bytes.
        let amount = if matches!(work.roofline, Roofline::Copy) {
            2.0 * work.amount
        } else {
            work.amount
        };
        doubles.push(Work {
            shape: shape(work.shape),
            operands,
            amount,
            ..work
        });
    }
    doubles
}

/// Rows that fit a larger cache: an exponential, and rows as long as a network's width.
fn cached(n: usize) -> Vec<Work> {
    let (cols, all) = (1024, 4 * n);
    let shape = format!("{}x{cols}", all / cols);
    vec![
        memory(
            "exp",
            format!("n{n}"),
            8 * n,
            vec![(F, n), (F, n)],
            |plan, v| plan.unary("exp", v[0], v[1]),
        ),
        memory(
            "softmax",
            shape.clone(),
            8 * all,
            vec![(F, all), (F, all)],
            move |plan, v| plan.softmax(v[0], v[1], all / cols, cols, 1.0),
        ),
        memory(
            "layer_norm",
            shape,
            8 * all,
            vec![(F, all), (F, cols), (F, cols), (F, all)],
            |plan, v| plan.layer_norm(v[0], [v[1], v[2]], v[3], 1e-5),
        ),
    ]
}

/// √(|(a·b + a) − b| · a): six operations in one pass.
fn chain(n: usize) -> Work {
    memory(
        "chain6",
        format!("n{n}"),
        12 * n,
        vec![(F, n); 3],
        |plan, v| {
            let mut chain = Chain::new(2)?;
            let (a, b) = (chain.input(0)?, chain.input(1)?);
            let product = chain.op("mul", &[a, b])?;
            let sum = chain.op("add", &[product, a])?;
            let difference = chain.op("sub", &[sum, b])?;
            let size = chain.op("abs", &[difference])?;
            let scaled = chain.op("mul", &[size, a])?;
            chain.op("sqrt", &[scaled])?;
            chain.record(plan, &v[..2], v[2])
        },
    )
}
