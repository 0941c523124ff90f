use tectum::{Activation, Result};

use crate::{Graph, GraphBuilder, Heads, Node, Pass};

/// A case: its name, the operations built over x [4, 3], w [3, 2], row [1, 2] and matrix [4, 2]
/// (nodes 0 to 3), and the lines after those four that the pass leaves.
pub type Case = (
    &'static str,
    fn(&mut GraphBuilder, [Node; 4]) -> Result<()>,
    &'static str,
);

fn build(f: fn(&mut GraphBuilder, [Node; 4]) -> Result<()>) -> Graph {
    let mut g = GraphBuilder::new();
    let nodes = [
        ("x", [4, 3]),
        ("w", [3, 2]),
        ("row", [1, 2]),
        ("matrix", [4, 2]),
    ]
    .map(|(name, shape)| g.input(name, shape).expect("right"));
    f(&mut g, nodes).expect("right");
    g.finish().expect("right")
}

pub fn check(pass: fn(&Graph) -> Graph, cases: &[Case]) {
    for (name, build_case, expected) in cases {
        let graph = build(*build_case);
        let passed = pass(&graph);
        let text = passed.describe();
        let lines: Vec<_> = text.lines().skip(4).collect();
        assert_eq!(
            lines,
            expected.split("; ").collect::<Vec<_>>(),
            "{name}\nfrom\n{}",
            graph.describe()
        );
        assert_eq!(
            pass(&passed).describe(),
            text,
            "{name}: the pass is idempotent"
        );
    }
}

#[test]
fn fusion_is_legal_only_where_nothing_else_wants_a_value() {
    check(
        Graph::fuse,
        &[
            (
                "a whole chain",
                |g, [x, w, row, matrix]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(product, row)?;
                    let active = g.tanh(sum)?;
                    let y = g.add(active, matrix)?;
                    g.output("y", y)
                },
                "%7 = linear(%0, %1, bias %2, tanh, residual %3) [4, 2]; output y %7",
            ),
            (
                "the product as second operand",
                |g, [x, w, row, matrix]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(row, product)?;
                    let active = g.relu(sum)?;
                    let y = g.add(matrix, active)?;
                    g.output("y", y)
                },
                "%7 = linear(%0, %1, bias %2, relu, residual %3) [4, 2]; output y %7",
            ),
            (
                "an activation without a bias",
                |g, [x, w, ..]| {
                    let product = g.matmul(x, w)?;
                    let y = g.sigmoid(product)?;
                    g.output("y", y)
                },
                "%5 = linear(%0, %1, sigmoid) [4, 2]; output y %5",
            ),
            (
                "transposed factors keep their transposition",
                |g, [x, _, row, matrix]| {
                    let product = g.matmul(x.transpose(), matrix)?;
                    let y = g.add(product, row)?;
                    g.output("y", y)
                },
                "%5 = linear(%0ᵀ, %3, bias %2) [3, 2]; output y %5",
            ),
            (
                "a product that is an output is kept",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let y = g.add(product, row)?;
                    g.output("product", product)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = add(%4, %2) [4, 2]; output product %4; output y %5",
            ),
            (
                "a sum that is an output ends the chain",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(product, row)?;
                    let y = g.tanh(sum)?;
                    g.output("sum", sum)?;
                    g.output("y", y)
                },
                "%5 = linear(%0, %1, bias %2) [4, 2]; %6 = tanh(%5) [4, 2]; output sum %5; output y %6",
            ),
            (
                "a product with two readers is kept",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(product, row)?;
                    let y = g.mul(sum, product)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = add(%4, %2) [4, 2]; %6 = mul(%5, %4) [4, 2]; output y %6",
            ),
            (
                "an activation with two readers ends the chain",
                |g, [x, w, _, matrix]| {
                    let product = g.matmul(x, w)?;
                    let active = g.tanh(product)?;
                    let sum = g.add(active, matrix)?;
                    let y = g.mul(sum, active)?;
                    g.output("y", y)
                },
                "%5 = linear(%0, %1, tanh) [4, 2]; %6 = add(%5, %3) [4, 2]; %7 = mul(%6, %5) [4, 2]; output y %7",
            ),
            (
                "a product added to itself is read twice",
                |g, [x, w, ..]| {
                    let product = g.matmul(x, w)?;
                    let y = g.add(product, product)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = add(%4, %4) [4, 2]; output y %5",
            ),
            (
                "the producer of the bias stays",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let bias = g.scale(row, 3.0)?;
                    let y = g.add(product, bias)?;
                    g.output("y", y)
                },
                "%5 = scale(%2, 3) [1, 2]; %6 = linear(%0, %1, bias %5) [4, 2]; output y %6",
            ),
            (
                "the producer of the residual stays",
                |g, [x, w, _, matrix]| {
                    let product = g.matmul(x, w)?;
                    let residual = g.tanh(matrix)?;
                    let y = g.add(residual, product)?;
                    g.output("y", y)
                },
                "%5 = tanh(%3) [4, 2]; %6 = linear(%0, %1, residual %5) [4, 2]; output y %6",
            ),
            (
                "a sum of two products fuses the first and reads the second",
                |g, [x, w, ..]| {
                    let first = g.matmul(x, w)?;
                    let second = g.matmul(x, w)?;
                    let y = g.add(first, second)?;
                    g.output("y", y)
                },
                "%5 = matmul(%0, %1) [4, 2]; %6 = linear(%0, %1, residual %5) [4, 2]; output y %6",
            ),
            (
                "bias and residual without an activation",
                |g, [x, w, row, matrix]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(product, row)?;
                    let sum = g.add(sum, matrix)?;
                    let y = g.tanh(sum)?;
                    g.output("y", y)
                },
                "%6 = linear(%0, %1, bias %2, residual %3) [4, 2]; %7 = tanh(%6) [4, 2]; output y %7",
            ),
            (
                "a row after the activation is no bias",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let active = g.tanh(product)?;
                    let y = g.add(active, row)?;
                    g.output("y", y)
                },
                "%5 = linear(%0, %1, tanh) [4, 2]; %6 = add(%5, %2) [4, 2]; output y %6",
            ),
            (
                "a second activation starts a launch of its own",
                |g, [x, w, ..]| {
                    let product = g.matmul(x, w)?;
                    let active = g.tanh(product)?;
                    let y = g.relu(active)?;
                    g.output("y", y)
                },
                "%5 = linear(%0, %1, tanh) [4, 2]; %6 = relu(%5) [4, 2]; output y %6",
            ),
            (
                "a scalar is no bias",
                |g, [x, w, ..]| {
                    let product = g.matmul(x, w)?;
                    let scalar = g.constant(&[2.0], [1, 1])?;
                    let y = g.add(product, scalar)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = constant(2) [1, 1]; %6 = add(%4, %5) [4, 2]; output y %6",
            ),
            (
                "a difference is no sum",
                |g, [x, w, row, _]| {
                    let product = g.matmul(x, w)?;
                    let y = g.sub(product, row)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = sub(%4, %2) [4, 2]; output y %5",
            ),
            (
                "a product that repeats into a sum is no chain",
                |g, [_, w, row, matrix]| {
                    let product = g.matmul(row, w.transpose())?;
                    let wide = g.matmul(matrix, w.transpose())?;
                    let y = g.add(wide, product)?;
                    g.output("y", y)
                },
                "%4 = matmul(%2, %1ᵀ) [1, 3]; %6 = linear(%3, %1ᵀ, bias %4) [4, 3]; output y %6",
            ),
        ],
    );
}

#[test]
fn a_product_of_one_row_takes_a_vector_as_bias_then_as_residual() {
    let mut g = GraphBuilder::new();
    let (x, w) = (
        g.input("x", [1, 3]).expect("right"),
        g.parameter("w", [3, 2]).expect("right"),
    );
    let (b, r) = (
        g.parameter("b", [1, 2]).expect("right"),
        g.input("r", [1, 2]).expect("right"),
    );
    let product = g.matmul(x, w).expect("right");
    let sum = g.add(b, product).expect("right");
    let y = g.add(sum, r).expect("right");
    g.output("y", y).expect("right");
    let text = g.finish().expect("right").fuse().describe();
    assert!(
        text.ends_with("%6 = linear(%0, %1, bias %2, residual %3) [1, 2]\noutput y %6\n"),
        "{text}"
    );
}

#[test]
fn pruning_removes_what_no_output_needs_and_keeps_the_interface() {
    check(
        Graph::prune,
        &[
            (
                "a dead chain",
                |g, [x, w, row, _]| {
                    let dead = g.matmul(x, w)?;
                    let dead = g.tanh(dead)?;
                    let y = g.relu(row)?;
                    let _dead = g.add(dead, row)?;
                    g.output("y", y)
                },
                "%6 = relu(%2) [1, 2]; output y %6",
            ),
            (
                "an output that others read",
                |g, [_, _, row, _]| {
                    let first = g.relu(row)?;
                    let second = g.tanh(first)?;
                    g.output("first", first)?;
                    g.output("second", second)
                },
                "%4 = relu(%2) [1, 2]; %5 = tanh(%4) [1, 2]; output first %4; output second %5",
            ),
            (
                "an input may be an output",
                |g, [x, ..]| g.output("x", x),
                "output x %0",
            ),
        ],
    );
}

#[test]
fn simplification_spares_broadcasts_and_constant_factors() {
    check(
        |graph| graph.simplify().prune(),
        &[
            (
                "a broadcast row as either operand",
                |g, [_, _, row, matrix]| {
                    let wide = g.broadcast(row, [4, 2])?;
                    let left = g.mul(wide, matrix)?;
                    let y = g.add(left, wide)?;
                    g.output("y", y)
                },
                "%5 = mul(%3, %2) [4, 2]; %6 = add(%5, %2) [4, 2]; output y %6",
            ),
            (
                "a difference from a broadcast keeps it",
                |g, [_, _, row, matrix]| {
                    let wide = g.broadcast(row, [4, 2])?;
                    let y = g.sub(wide, matrix)?;
                    g.output("y", y)
                },
                "%4 = broadcast(%2) [4, 2]; %5 = sub(%4, %3) [4, 2]; output y %5",
            ),
            (
                "a broadcast times itself keeps one",
                |g, [_, _, row, _]| {
                    let wide = g.broadcast(row, [4, 2])?;
                    let y = g.mul(wide, wide)?;
                    g.output("y", y)
                },
                "%4 = broadcast(%2) [4, 2]; %5 = mul(%4, %2) [4, 2]; output y %5",
            ),
            (
                "constants and scales merge",
                |g, [x, ..]| {
                    let constant = g.constant(&[4.0], [1, 1])?;
                    let constant = g.scale(constant, 0.25)?;
                    let scaled = g.scale(x, 3.0)?;
                    let scaled = g.scale(scaled, 5.0)?;
                    let y = g.mul(constant, scaled)?;
                    g.output("y", y)
                },
                "%8 = scale(%0, 15) [4, 3]; output y %8",
            ),
            (
                "a product of scales that overflows does not merge",
                |g, [x, ..]| {
                    let huge = g.scale(x, 1e30)?;
                    let y = g.scale(huge, 1e30)?;
                    g.output("y", y)
                },
                "%4 = scale(%0, 1000000000000000000000000000000) [4, 3]; %5 = scale(%4, 1000000000000000000000000000000) [4, 3]; output y %5",
            ),
            (
                "a column is no repetition of an operand",
                |g, [_, _, _, matrix]| {
                    let column = g.sum_over_columns(matrix)?;
                    let wide = g.broadcast(column, [4, 2])?;
                    let y = g.mul(matrix, wide)?;
                    g.output("y", y)
                },
                "%4 = sum_over_columns(%3) [4, 1]; %5 = broadcast(%4) [4, 2]; %6 = mul(%3, %5) [4, 2]; output y %6",
            ),
        ],
    );
}

#[test]
fn what_is_made_of_constants_alone_is_folded() {
    check(
        |graph| graph.fold().prune(),
        &[
            (
                "a chain of constants",
                |g, [x, ..]| {
                    let (one, two) = (
                        g.constant(&[1.0, 2.0, 3.0], [1, 3])?,
                        g.constant(&[0.5, 0.25, -1.0], [1, 3])?,
                    );
                    let sum = g.add(one, two)?;
                    let active = g.relu(sum)?;
                    let y = g.add(x, active)?;
                    g.output("y", y)
                },
                "%7 = constant(1.5, 2.25, 2) [1, 3]; %8 = add(%0, %7) [4, 3]; output y %8",
            ),
            (
                "a product of constants that is smaller than they are",
                |g, [x, ..]| {
                    let (a, b) = (
                        g.constant(&[1.0, 2.0, 3.0, 4.0], [2, 2])?,
                        g.constant(&[1.0, -1.0], [2, 1])?,
                    );
                    let product = g.matmul(a, b)?;
                    let total = g.sum(product)?;
                    let y = g.mul(x, total)?;
                    g.output("y", y)
                },
                "%7 = constant(-2) [1, 1]; %8 = mul(%0, %7) [4, 3]; output y %8",
            ),
            (
                "a constant that would grow stays a broadcast",
                |g, [.., matrix]| {
                    let row = g.constant(&[1.0, 2.0], [1, 2])?;
                    let wide = g.broadcast(row, [4, 2])?;
                    let y = g.sub(wide, matrix)?;
                    g.output("y", y)
                },
                "%4 = constant(1, 2) [1, 2]; %5 = broadcast(%4) [4, 2]; %6 = sub(%5, %3) [4, 2]; output y %6",
            ),
            (
                "what overflows is left to the device",
                |g, _| {
                    let huge = g.constant(&[1e30], [1, 1])?;
                    let y = g.mul(huge, huge)?;
                    g.output("y", y)
                },
                "%4 = constant(1000000000000000000000000000000) [1, 1]; %5 = mul(%4, %4) [1, 1]; output y %5",
            ),
            (
                "an output may be a constant",
                |g, _| {
                    let one = g.constant(&[1.0], [1, 1])?;
                    let y = g.scale(one, 3.0)?;
                    g.output("y", y)
                },
                "%5 = constant(3) [1, 1]; output y %5",
            ),
        ],
    );
}

#[test]
fn what_is_computed_twice_is_computed_once() {
    check(
        |graph| graph.eliminate_common_subexpressions().prune(),
        &[
            (
                "a chain and the same again",
                |g, [x, w, ..]| {
                    let [one, two] =
                        [0; 2].map(|_| g.matmul(x, w).and_then(|product| g.tanh(product)));
                    let y = g.mul(one?, two?)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = tanh(%4) [4, 2]; %8 = mul(%5, %5) [4, 2]; output y %8",
            ),
            (
                "another operation of the same operands is another value",
                |g, [.., row, matrix]| {
                    let (one, two) = (g.sub(matrix, row)?, g.add(matrix, row)?);
                    let y = g.mul(one, two)?;
                    g.output("y", y)
                },
                "%4 = sub(%3, %2) [4, 2]; %5 = add(%3, %2) [4, 2]; %6 = mul(%4, %5) [4, 2]; output y %6",
            ),
            (
                "an output keeps its node",
                |g, [_, _, row, _]| {
                    let (one, two) = (g.relu(row)?, g.relu(row)?);
                    let after = g.tanh(two)?;
                    g.output("one", one)?;
                    g.output("two", two)?;
                    g.output("after", after)
                },
                "%4 = relu(%2) [1, 2]; %5 = relu(%2) [1, 2]; %6 = tanh(%4) [1, 2]; output one %4; output two %5; output after %6",
            ),
            (
                "constants differ where the text does not show it",
                |g, [_, _, _, matrix]| {
                    let (one, two) = (
                        g.constant(&[1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 5.0], [4, 2])?,
                        g.constant(&[1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 6.0], [4, 2])?,
                    );
                    let same = g.constant(&[1.0, 1.0, 1.0, 1.0, 5.0, 5.0, 5.0, 6.0], [4, 2])?;
                    let sum = g.add(matrix, one)?;
                    let sum = g.add(sum, two)?;
                    let y = g.add(sum, same)?;
                    g.output("y", y)
                },
                "%4 = constant(1, 1, 1, 1, …) [4, 2]; %5 = constant(1, 1, 1, 1, …) [4, 2]; %7 = add(%3, %4) [4, 2]; %8 = add(%7, %5) [4, 2]; %9 = add(%8, %5) [4, 2]; output y %9",
            ),
            (
                "zeros of either sign are two",
                |g, [_, _, row, _]| {
                    let (one, two) = (g.scale(row, 0.0)?, g.scale(row, -0.0)?);
                    let y = g.add(one, two)?;
                    g.output("y", y)
                },
                "%4 = scale(%2, 0) [1, 2]; %5 = scale(%2, -0) [1, 2]; %6 = add(%4, %5) [1, 2]; output y %6",
            ),
        ],
    );
}

/// A graph that every pass changes: without any one pass the result differs.
fn of_everything() -> Result<Graph> {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [2, 3, 4])?;
    let mut products = Vec::new();
    for name in ["q", "k", "v"] {
        let weight = g.parameter(name, [4, 4])?;
        products.push(g.matmul(x, weight.transpose())?);
    }
    let attended = g.attention(
        [products[0], products[1], products[2]],
        None,
        Heads::new(2, 2),
    )?;
    let weight = g.parameter("w", [4, 4])?;
    let product = g.matmul(attended, weight)?;
    let active = g.tanh(product)?;
    let (one, two) = (g.sigmoid(active)?, g.sigmoid(active)?);
    let sum = g.add(one, two)?;
    let (a, b) = (
        g.constant(&[1.0; 4], [1, 4])?,
        g.constant(&[2.0; 4], [1, 4])?,
    );
    let known = g.add(a, b)?;
    let sum = g.add(sum, known)?;
    let scaled = g.scale(sum, 2.0)?;
    let y = g.scale(scaled, 3.0)?;
    g.output("y", y)?;
    g.finish()
}

#[test]
fn passes_are_left_out_one_by_one() {
    let graph = of_everything().expect("right");
    let whole = graph.optimize().describe();
    for pass in Pass::ALL {
        assert_ne!(
            graph.optimize_without(&[pass]).describe(),
            whole,
            "without {pass}"
        );
    }
    assert_eq!(graph.optimize_without(&[]).describe(), whole);
    assert_eq!(
        graph.optimize_without(&Pass::ALL).describe(),
        graph.describe()
    );
}

/// The training step of a two-layer network: 2 launches forward, 4 for the loss, 7 for the
/// gradients.
#[test]
fn the_gradients_of_a_network_optimize_to_this() {
    let mut g = GraphBuilder::new();
    let (x, target) = (
        g.input("x", [32, 4]).expect("right"),
        g.input("target", [32, 2]).expect("right"),
    );
    let hidden = g.dense("one", x, 64, Activation::Tanh).expect("right");
    let y = g.dense("two", hidden, 2, Activation::None).expect("right");
    let loss = g.mse(y, target).expect("right");
    g.output("loss", loss).expect("right");
    let text = g
        .finish()
        .expect("right")
        .gradients(loss)
        .expect("right")
        .optimize()
        .describe();
    assert_eq!(
        text,
        "\
%0 = input x [32, 4]
%1 = input target [32, 2]
%2 = parameter one.weight [4, 64]
%3 = parameter one.bias [1, 64]
%6 = linear(%0, %2, bias %3, tanh) [32, 64]
%7 = parameter two.weight [64, 2]
%8 = parameter two.bias [1, 2]
%10 = linear(%6, %7, bias %8) [32, 2]
%11 = sub(%10, %1) [32, 2]
%12 = mul(%11, %11) [32, 2]
%13 = sum(%12) [1, 1]
%14 = scale(%13, 0.015625) [1, 1]
%19 = scale(%11, 0.03125) [32, 2]
%20 = sum_over_rows(%19) [1, 2]
%21 = matmul(%19, %7ᵀ) [32, 64]
%22 = matmul(%6ᵀ, %19) [64, 2]
%23 = tanh_grad(%6, %21) [32, 64]
%24 = sum_over_rows(%23) [1, 64]
%25 = matmul(%0ᵀ, %23) [4, 64]
output loss %14
output grad.one.weight %25
output grad.one.bias %24
output grad.two.weight %22
output grad.two.bias %20
"
    );
}

/// Text in → text out: products with gates are activations, whatever the order of their factors.
#[test]
fn gates_are_activations() {
    let head = "%0 = input x [2, 3]\n";
    let cases = [
        (
            "%1 = sigmoid(%0) [2, 3]\n%2 = mul(%0, %1) [2, 3]\noutput y %2\n",
            "silu(%0)",
        ),
        (
            "%1 = sigmoid(%0) [2, 3]\n%2 = mul(%1, %0) [2, 3]\noutput y %2\n",
            "silu(%0)",
        ),
        (
            "%1 = constant(1.4142135) [1, 1]\n%2 = div(%0, %1) [2, 3]\n%3 = erf(%2) [2, 3]\n%4 = constant(1) [1, 1]\n%5 = add(%3, %4) [2, 3]\n%6 = mul(%0, %5) [2, 3]\n%7 = scale(%6, 0.5) [2, 3]\noutput y %7\n",
            "gelu_erf(%0)",
        ),
        (
            "%1 = scale(%0, 0.70710677) [2, 3]\n%3 = erf(%1) [2, 3]\n%4 = constant(1) [1, 1]\n%5 = add(%3, %4) [2, 3]\n%6 = scale(%0, 0.5) [2, 3]\n%7 = mul(%6, %5) [2, 3]\noutput y %7\n",
            "gelu_erf(%0)",
        ),
        (
            "%1 = scale(%0, 0.7) [2, 3]\n%3 = erf(%1) [2, 3]\n%4 = constant(1) [1, 1]\n%5 = add(%3, %4) [2, 3]\n%6 = scale(%0, 0.5) [2, 3]\n%7 = mul(%6, %5) [2, 3]\noutput y %7\n",
            "mul(%6, %5)",
        ),
    ];
    for (before, after) in cases {
        let text = Graph::parse(&format!("{head}{before}"))
            .unwrap_or_else(|error| panic!("{before}: {error}"))
            .simplify()
            .prune()
            .describe();
        assert!(text.contains(after), "{text}");
    }
}
