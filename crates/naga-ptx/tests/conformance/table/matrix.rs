//! Matrices of every shape. The numbers are small integers, so that every order of the sums is
//! exact.

use half::f16;

use crate::case::{BufferKind, Case, Expected, Near, Number, Output, Wanted};
use crate::lanes::Float;

/// Input sets of a case; one invocation each.
const SETS: usize = 6;
/// WGSL has no bound for determinants; small integers cause little error.
const DETERMINANT: f64 = 1e-3;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for columns in 2..=4 {
        for rows in 2..=4 {
            shape::<f32>(&mut cases, columns, rows);
        }
    }
    shape::<f16>(&mut cases, 2, 3);
    shape::<f16>(&mut cases, 4, 4);
    shape::<f64>(&mut cases, 3, 3);
    shape::<f64>(&mut cases, 4, 2);
    for size in 2..=4 {
        determinant::<f32>(&mut cases, size);
    }
    determinant::<f16>(&mut cases, 2);
    determinant::<f64>(&mut cases, 3);
    cases
}

/// Columns of a matrix.
type Matrix = Vec<Vec<f64>>;

fn shape<T: Float>(cases: &mut Vec<Case>, columns: usize, rows: usize) {
    let scalar = T::TYPE.name;
    let matrix = format!("mat{columns}x{rows}<{scalar}>");
    let other_columns = 2 + (columns + rows) % 3;
    let other = format!("mat{other_columns}x{columns}<{scalar}>");
    let square = format!("mat{rows}x{columns}<{scalar}>");
    let mut case = |what: &str,
                    outputs: usize,
                    body: String,
                    f: &dyn Fn(&Matrix, &Matrix, usize) -> Vec<f64>| {
        cases.push(program::<T>(
            format!("matrix/{what}/{matrix}"),
            [&matrix, &other],
            outputs,
            &body,
            |set| {
                let a = numbers(columns, rows, set);
                let b = numbers(other_columns, columns, set + 7);
                f(&a, &b, set)
            },
        ));
    };
    let vector = |n: usize, of: &str| {
        format!(
            "vec{n}<{scalar}>({})",
            (0..n)
                .map(|k| of.replace('#', &k.to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        )
    };
    let store = |from: &str, columns: usize, rows: usize, at: usize| -> String {
        let cells = (0..columns).flat_map(|c| (0..rows).map(move |r| (c, r)));
        cells
            .enumerate()
            .map(|(k, (c, r))| format!("    out[o + {}u] = {from}[{c}][{r}];\n", at + k))
            .collect()
    };
    let row_vector = vector(rows, &format!("{scalar}(# + 2)"));
    let column_vector = vector(columns, &format!("{scalar}(3 - #)"));
    let body = format!(
        "    let v = a * {column_vector};\n    let w = {row_vector} * a;\n    let p = a * b;\n{}{}{}",
        (0..rows)
            .map(|r| format!("    out[o + {r}u] = v[{r}];\n"))
            .collect::<String>(),
        (0..columns)
            .map(|c| format!("    out[o + {}u] = w[{c}];\n", rows + c))
            .collect::<String>(),
        store("p", other_columns, rows, rows + columns),
    );
    case(
        "products",
        rows + columns + other_columns * rows,
        body,
        &|a, b, _| {
            let v = (0..rows).map(|r| (0..columns).map(|c| a[c][r] * (3.0 - c as f64)).sum());
            let w = (0..columns).map(|c| (0..rows).map(|r| a[c][r] * (r as f64 + 2.0)).sum());
            let p = b.iter().flat_map(|column| {
                (0..rows).map(|r| (0..columns).map(|c| a[c][r] * column[c]).sum::<f64>())
            });
            v.chain(w).chain(p).collect()
        },
    );
    let cells = columns * rows;
    let body = format!(
        "    let sum = a + a * {scalar}(3);\n    let less = {scalar}(2) * a - a;\n    let t: {square} = transpose(a);\n{}{}{}",
        store("sum", columns, rows, 0),
        store("less", columns, rows, cells),
        store("t", rows, columns, 2 * cells),
    );
    case("sums and transpose", 3 * cells, body, &|a, _, _| {
        let sum = a.iter().flatten().map(|x| 4.0 * x);
        let t = (0..rows).flat_map(|r| a.iter().map(move |column| column[r]));
        sum.chain(a.iter().flatten().copied()).chain(t).collect()
    });
    let body = format!(
        "    let k = i % {columns}u;\n    let j = i % {rows}u;\n    let column = a[k];\n    out[o] = column[j];\n    out[o + 1u] = a[k][j];\n\
         var m = a;\n    m[k] = {row_vector};\n    m[(k + 1u) % {columns}u][j] = {scalar}(50);\n    m[0].x += {scalar}(1);\n{}",
        store("m", columns, rows, 2),
    );
    case("indexing", 2 + cells, body, &|a, _, set| {
        let (k, j, mut m) = (set % columns, set % rows, a.clone());
        m[k] = (0..rows).map(|r| r as f64 + 2.0).collect();
        m[(k + 1) % columns][j] = 50.0;
        m[0][0] += 1.0;
        [a[k][j], a[k][j]]
            .into_iter()
            .chain(m.into_iter().flatten())
            .collect()
    });
}

fn determinant<T: Float>(cases: &mut Vec<Case>, size: usize) {
    let matrix = format!("mat{size}x{size}<{}>", T::TYPE.name);
    let mut case = program::<T>(
        format!("matrix/determinant/{matrix}"),
        [&matrix, &matrix],
        1,
        "    out[o] = determinant(a);\n",
        |set| vec![minor(&numbers(size, size, set))],
    );
    if let Expected::Fixed(outputs) = &mut case.expected
        && let Wanted::Near(values) = &mut outputs[0].wanted
    {
        values
            .iter_mut()
            .for_each(|value| (value.ptx, value.wgpu) = (DETERMINANT, DETERMINANT));
    }
    cases.push(case);
}

/// By the first row's cofactors.
fn minor(m: &Matrix) -> f64 {
    if m.len() == 1 {
        return m[0][0];
    }
    let without = |skip: usize| {
        (0..m.len())
            .filter(move |&c| c != skip)
            .map(|c| m[c][1..].to_vec())
            .collect::<Matrix>()
    };
    (0..m.len())
        .map(|c| {
            if c % 2 == 0 {
                m[c][0] * minor(&without(c))
            } else {
                -m[c][0] * minor(&without(c))
            }
        })
        .sum()
}

fn numbers(columns: usize, rows: usize, set: usize) -> Matrix {
    (0..columns)
        .map(|c| {
            (0..rows)
                .map(|r| ((set * 5 + c * 7 + r * 3 + c * r * r) % 11) as f64 - 4.0)
                .collect()
        })
        .collect()
}

/// Two arrays of matrices in, `outputs` numbers per invocation out.
fn program<T: Float>(
    name: String,
    types: [&str; 2],
    outputs: usize,
    body: &str,
    f: impl Fn(usize) -> Vec<f64>,
) -> Case {
    let scalar = T::TYPE.name;
    let enable = if scalar == "f16" { "enable f16;\n" } else { "" };
    let source = format!(
        "{enable}@group(0) @binding(0) var<storage, read> as_: array<{}>;\n@group(0) @binding(1) var<storage, read> bs: array<{}>;\n\
         @group(0) @binding(2) var<storage, read_write> out: array<{scalar}>;\n@compute @workgroup_size({SETS})\n\
         fn main(@builtin(local_invocation_index) i: u32) {{\n    let o = i * {outputs}u;\n    let a = as_[i];\n    let b = bs[i];\n    _ = b;\n{body}}}\n",
        types[0], types[1],
    );
    let dimensions = |ty: &str| [3, 5].map(|at| usize::from(ty.as_bytes()[at] - b'0'));
    let wanted = (0..SETS)
        .flat_map(f)
        .map(|value| Near {
            value,
            ptx: 0.0,
            wgpu: 0.0,
        })
        .collect::<Vec<_>>();
    let mut case = Case::new(name, source).features(T::TYPE.features());
    for (ty, offset) in types.into_iter().zip([0, 7]) {
        let [columns, rows] = dimensions(ty);
        let sets = (0..SETS).map(|set| numbers(columns, rows, set + offset));
        case = case.buffer(
            BufferKind::Read,
            sets.flat_map(|m| stored::<T>(&m)).collect(),
        );
    }
    case = case.buffer(
        BufferKind::ReadWrite,
        vec![0; wanted.len() * size_of::<T>()],
    );
    case.expected = Expected::Fixed(vec![Output {
        buffer: 2,
        element: <T as Number>::ELEMENT,
        wanted: Wanted::Near(wanted),
    }]);
    case
}

/// Columns of three rows are padded to four.
fn stored<T: Float>(matrix: &Matrix) -> Vec<u8> {
    let column = |column: &Vec<f64>| {
        let padding = if column.len() == 3 { Some(0.0) } else { None };
        column
            .iter()
            .copied()
            .chain(padding)
            .flat_map(|x| T::of(x).bytes())
            .collect::<Vec<_>>()
    };
    matrix.iter().flat_map(column).collect()
}
