//! Chains of elementwise operations: text in → text out, and what they compute on every device.

use tectum::Device;
use tectum_programs::MAX_INPUTS;

use super::passes::check;
use crate::{Graph, GraphBuilder};

#[test]
fn chains_take_what_nothing_else_wants() {
    check(
        Graph::fuse_chains,
        &[
            (
                "one after another",
                |g, [.., matrix]| {
                    let bent = g.tanh(matrix)?;
                    let scaled = g.scale(bent, 2.0)?;
                    let y = g.relu(scaled)?;
                    g.output("y", y)
                },
                "%6 = chain(%4 = tanh(%3) | %5 = scale(%4, 2) | relu(%5)) [4, 2]; output y %6",
            ),
            (
                "a value that is read twice within",
                |g, [.., matrix]| {
                    let scaled = g.scale(matrix, 3.0)?;
                    let y = g.mul(scaled, scaled)?;
                    g.output("y", y)
                },
                "%5 = chain(%4 = scale(%3, 3) | mul(%4, %4)) [4, 2]; output y %5",
            ),
            (
                "two ways that meet again",
                |g, [.., matrix]| {
                    let bent = g.tanh(matrix)?;
                    let (left, right) = (g.relu(bent)?, g.scale(bent, 0.5)?);
                    let y = g.sub(left, right)?;
                    g.output("y", y)
                },
                "%7 = chain(%4 = tanh(%3) | %5 = relu(%4) | %6 = scale(%4, 0.5) | sub(%5, %6)) [4, 2]; output y %7",
            ),
            (
                "an output is kept",
                |g, [.., matrix]| {
                    let bent = g.tanh(matrix)?;
                    let y = g.relu(bent)?;
                    g.output("bent", bent)?;
                    g.output("y", y)
                },
                "%4 = tanh(%3) [4, 2]; %5 = relu(%4) [4, 2]; output bent %4; output y %5",
            ),
            (
                "what another reads is kept",
                |g, [.., matrix]| {
                    let bent = g.tanh(matrix)?;
                    let y = g.relu(bent)?;
                    let total = g.sum(bent)?;
                    g.output("total", total)?;
                    g.output("y", y)
                },
                "%4 = tanh(%3) [4, 2]; %5 = relu(%4) [4, 2]; %6 = sum(%4) [1, 1]; output total %6; output y %5",
            ),
            (
                "two chains that read one value",
                |g, [.., matrix]| {
                    let shared = g.tanh(matrix)?;
                    for name in ["one", "two"] {
                        let scaled = g.scale(shared, 2.0)?;
                        let y = g.sigmoid(scaled)?;
                        g.output(name, y)?;
                    }
                    Ok(())
                },
                "%4 = tanh(%3) [4, 2]; %6 = chain(%5 = scale(%4, 2) | sigmoid(%5)) [4, 2]; \
            %8 = chain(%7 = scale(%4, 2) | sigmoid(%7)) [4, 2]; output one %6; output two %8",
            ),
            (
                "a row that repeats ends a chain",
                |g, [_, _, row, matrix]| {
                    let bent = g.tanh(matrix)?;
                    let sum = g.add(bent, row)?;
                    let scaled = g.scale(sum, 2.0)?;
                    let y = g.relu(scaled)?;
                    g.output("y", y)
                },
                "%4 = tanh(%3) [4, 2]; %5 = add(%4, %2) [4, 2]; %7 = chain(%6 = scale(%5, 2) | relu(%6)) [4, 2]; output y %7",
            ),
            (
                "a scalar constant is part of the program",
                |g, [.., matrix]| {
                    let one = g.constant(&[1.0], [1, 1])?;
                    let bent = g.tanh(matrix)?;
                    let y = g.sub(bent, one)?;
                    g.output("y", y)
                },
                "%4 = constant(1) [1, 1]; %6 = chain(%5 = tanh(%3) | sub(%5, %4)) [4, 2]; output y %6",
            ),
            (
                "what is of another shape ends a chain",
                |g, [.., row, matrix]| {
                    let bent = g.tanh(row)?;
                    let sum = g.add(matrix, bent)?;
                    let y = g.relu(sum)?;
                    g.output("y", y)
                },
                "%4 = tanh(%2) [1, 2]; %5 = add(%3, %4) [4, 2]; %6 = relu(%5) [4, 2]; output y %6",
            ),
            (
                "nothing to bind, no chain",
                |g, _| {
                    let huge = g.constant(&[1e30], [1, 1])?;
                    let product = g.mul(huge, huge)?;
                    let y = g.relu(product)?;
                    g.output("y", y)
                },
                "%4 = constant(1000000000000000000000000000000) [1, 1]; %5 = mul(%4, %4) [1, 1]; %6 = relu(%5) [1, 1]; output y %6",
            ),
            (
                "products are no part of it",
                |g, [x, w, row, matrix]| {
                    let product = g.matmul(x, w)?;
                    let sum = g.add(product, row)?;
                    let gate = g.mul(sum, matrix)?;
                    let y = g.tanh(gate)?;
                    g.output("y", y)
                },
                "%4 = matmul(%0, %1) [4, 2]; %5 = add(%4, %2) [4, 2]; %7 = chain(%6 = mul(%5, %3) | tanh(%6)) [4, 2]; output y %7",
            ),
        ],
    );
}

/// A duplicated computation leaves an unused reader: it does not separate a product from its tail,
/// or split a chain.
#[test]
fn what_unifying_leaves_over_stops_no_fusion() {
    let mut g = GraphBuilder::new();
    let [x, w, b] = [("x", [4, 3]), ("w", [3, 2]), ("b", [1, 2])]
        .map(|(name, shape)| g.input(name, shape).expect("right"));
    let twice = [0; 2].map(|_| {
        let product = g
            .matmul(x, w)
            .and_then(|product| g.add(product, b))
            .expect("right");
        g.tanh(product)
            .and_then(|bent| g.scale(bent, 2.0))
            .and_then(|scaled| g.sigmoid(scaled))
            .expect("right")
    });
    let y = g.mul(twice[0], twice[1]).expect("right");
    g.output("y", y).expect("right");
    let text = g.finish().expect("right").optimize().describe();
    let lines: Vec<_> = text.lines().skip(3).collect();
    assert_eq!(
        lines,
        [
            "%5 = linear(%0, %1, bias %2, tanh) [4, 2]",
            "%13 = chain(%6 = scale(%5, 2) | %7 = sigmoid(%6) | mul(%7, %7)) [4, 2]",
            "output y %13",
        ]
    );
}

/// At most as many values as a launch binds; a value read again costs no other binding.
#[test]
fn a_chain_binds_no_more_than_a_launch_can() {
    let mut g = GraphBuilder::new();
    let inputs: Vec<_> = (0..MAX_INPUTS + 2)
        .map(|index| g.input(&format!("x{index}"), [3, 5]).expect("right"))
        .collect();
    let mut sum = inputs[0];
    for &input in inputs[1..].iter().chain(&inputs[MAX_INPUTS..]) {
        sum = g.add(sum, input).expect("right");
    }
    g.output("y", sum).expect("right");
    let graph = g.finish().expect("right");
    let text = graph.fuse_chains().describe();
    let chains: Vec<_> = text
        .lines()
        .filter(|line| line.contains("chain("))
        .collect();
    assert_eq!(
        chains,
        [
            "%10 = chain(%9 = add(%0, %1) | add(%9, %2)) [3, 5]",
            "%18 = chain(%11 = add(%10, %3) | %12 = add(%11, %4) | %13 = add(%12, %5) | %14 = add(%13, %6) | %15 = add(%14, %7) | \
         %16 = add(%15, %8) | %17 = add(%16, %7) | add(%17, %8)) [3, 5]",
        ]
    );
    assert_eq!(Graph::parse(&text).expect("read").describe(), text);
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a chain of many values");
            continue;
        };
        let results = [graph.compile(&device), graph.compile_unfused(&device)].map(|compiled| {
            let mut compiled = compiled.expect("compiles");
            for index in 0..inputs.len() {
                compiled
                    .set_input(&format!("x{index}"), &[index as f32 + 0.25; 15])
                    .expect("fits");
            }
            let launches = compiled.run().expect("runs").launches;
            (launches, compiled.output("y").expect("ran").to_vec())
        });
        assert_eq!((results[0].0, results[1].0), (2, 10));
        assert_eq!(results[0].1, results[1].1);
    }
}
