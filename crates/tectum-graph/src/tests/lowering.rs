use tectum::{ALIGNED_ELEMENTS, Activation, DType, Device, PlanBuilder, Stream};

use crate::{Graph, GraphBuilder};

fn network() -> Graph {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 4]).expect("right");
    let hidden = g.dense("one", x, 8, Activation::Tanh).expect("right");
    let y = g.dense("two", hidden, 4, Activation::None).expect("right");
    g.output("hidden", hidden).expect("right");
    g.output("y", y).expect("right");
    g.finish().expect("right")
}

#[test]
fn each_parameter_begins_at_an_aligned_element() {
    let graph = network();
    let layout = graph.parameter_layout();
    let places: Vec<_> = layout
        .entries()
        .iter()
        .map(|entry| (entry.name.as_str(), entry.range()))
        .collect();
    assert_eq!(
        places,
        [
            ("one.weight", 0..32),
            ("one.bias", 64..72),
            ("two.weight", 128..160),
            ("two.bias", 192..196)
        ]
    );
    assert_eq!(layout.len(), 4 * ALIGNED_ELEMENTS);
    assert!(
        layout
            .entry("three")
            .expect_err("absent")
            .to_string()
            .contains("there are one.weight, one.bias")
    );
    let mut plan = PlanBuilder::new("p");
    let short = plan.state("short", DType::F32, 196);
    assert_eq!(
        layout.feeds(&graph, short).expect_err("short").to_string(),
        "parameter layout of 256 elements: a view of 196 does not fit"
    );
}

#[test]
fn only_what_the_outputs_need_is_recorded_and_fused() {
    let graph = network();
    let layout = graph.parameter_layout();
    let (x, y, hidden) = (
        graph.inputs().next().expect("there").1,
        graph.output("y").expect("there"),
        graph.output("hidden").expect("there"),
    );
    let texts = [Graph::record, Graph::record_unfused].map(|record| {
        let mut plan = PlanBuilder::new("p");
        let weights = plan.state("w", DType::F32, layout.len());
        let (input, output) = (
            plan.input("x", DType::F32, 4),
            plan.output("h", DType::F32, 8),
        );
        let mut feeds = layout.feeds(&graph, weights).expect("fits");
        feeds.push((x, input));
        record(&graph, &mut plan, &feeds, &[(hidden, output)]).expect("records");
        plan.finish().expect("whole").describe()
    });
    assert_eq!(
        texts[0],
        "gemm_f32_bias x[4] w[0..32] h[8] w[64..72] groups 1\n"
    );
    assert_eq!(
        texts[1],
        "gemm_f32 x[4] w[0..32] temp3[8] groups 1\nadd_f32 temp3[8] w[64..72] temp4[8] groups 1\ntanh_f32 temp4[8] h[8] groups 1\n"
    );
    let compiled = graph.compile(&Device::open("null").expect("null"));
    assert!(compiled.is_ok());
    assert_ne!(y, hidden);
}

/// The steps of a rollout: one network recorded repeatedly over one set of weights.
#[test]
fn a_graph_recorded_many_times_shares_its_weights() {
    let graph = network();
    let layout = graph.parameter_layout();
    let (x, y) = (
        graph.inputs().next().expect("there").1,
        graph.output("y").expect("there"),
    );
    let mut plan = PlanBuilder::new("rollout");
    let weights = plan.state("w", DType::F32, layout.len());
    let feeds = layout.feeds(&graph, weights).expect("fits");
    let (first, last) = (
        plan.input("x0", DType::F32, 4),
        plan.output("x9", DType::F32, 4),
    );
    let mut state = first;
    for step in 0..9 {
        let next = if step == 8 {
            last
        } else {
            plan.temp(DType::F32, 4)
        };
        graph
            .record(
                &mut plan,
                &[&feeds[..], &[(x, state)]].concat(),
                &[(y, next)],
            )
            .expect("records");
        state = next;
    }
    let plan = plan.finish().expect("whole");
    assert_eq!(plan.kernels().count(), 18);
    let (shared, unshared) = plan.temp_bytes();
    assert!(shared < unshared, "{shared} of {unshared} bytes");
    let mut run = plan
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    let flat: Vec<f32> = (0..layout.len())
        .map(|index| (index as f32 * 0.7).sin() * 0.5)
        .collect();
    run.write_state(weights, &flat).expect("fits");
    run.input::<f32>(first)
        .copy_from_slice(&[0.1, -0.2, 0.3, -0.4]);
    run.run().expect("runs");

    let mut one = graph
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    for entry in layout.entries() {
        one.set_parameter(&entry.name, &flat[entry.range()])
            .expect("fits");
    }
    let mut state = vec![0.1, -0.2, 0.3, -0.4];
    for _ in 0..9 {
        one.set_input("x", &state).expect("fits");
        one.run().expect("runs");
        state = one.output("y").expect("ran").to_vec();
    }
    assert_eq!(run.output::<f32>(last), state);
}

/// With one row, the gradient of a bias is read by the gradient of its weights, and both go to one
/// slot.
#[test]
fn a_training_step_with_flat_gradients_learns() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a lowered training step");
            continue;
        };
        let mut g = GraphBuilder::from(network());
        let target = g.input("target", [1, 4]).expect("right");
        let y = g.graph().output("y").expect("there");
        let loss = g.mse(y, target).expect("right");
        g.output("loss", loss).expect("right");
        let graph = g
            .finish()
            .expect("right")
            .gradients(loss)
            .expect("differentiates");
        let layout = graph.parameter_layout();

        let mut plan = PlanBuilder::new("train");
        let states = ["w", "m", "v", "grad"].map(|name| plan.state(name, DType::F32, layout.len()));
        let [w, m, v, gradients] = states;
        let (schedule, value) = (
            plan.input("schedule", DType::F32, 4),
            plan.output("loss", DType::F32, 1),
        );
        let mut feeds = layout.feeds(&graph, w).expect("fits");
        feeds.extend(
            graph
                .inputs()
                .map(|(name, node, shape)| (node, plan.constant(name, &vec![0.5f32; shape.len()]))),
        );
        let mut outputs = layout.gradient_outputs(&graph, gradients).expect("there");
        outputs.push((loss, value));
        graph.record(&mut plan, &feeds, &outputs).expect("records");
        plan.adamw(schedule, gradients, [w, m, v], 0.9, 0.999)
            .expect("records");
        let mut run = plan
            .finish()
            .expect("whole")
            .compile(&device)
            .expect("compiles");
        let mut losses = Vec::new();
        for step in 1..=100 {
            let unbias = [0.9f32, 0.999].map(|beta| 1.0 / (1.0 - beta.powi(step)));
            run.input::<f32>(schedule)
                .copy_from_slice(&[0.01, unbias[0], unbias[1], 0.0]);
            run.run().expect("runs");
            losses.push(run.output::<f32>(value)[0]);
        }
        assert!(
            losses[0] == 0.25 && losses[99] < 1e-3,
            "{id}: {} → {}",
            losses[0],
            losses[99]
        );
        let flat: Vec<f32> = run.read_state(gradients).expect("reads");
        assert_eq!(flat[72..128], [0.0; 56], "{id}: padding stays zero");
    }
}

/// Outputs that are read, named twice, or not computed at all.
#[test]
fn an_output_may_be_anything() {
    let mut g = GraphBuilder::new();
    let x = g.input("x", [2, 2]).expect("right");
    let scalar = g.sum(x).expect("right");
    let wide = g.broadcast(scalar, [2, 2]).expect("right");
    let column = g.sum_over_columns(x).expect("right");
    let wide_column = g.broadcast(column, [2, 2]).expect("right");
    let row = g.sum_over_rows(x).expect("right");
    let wide_row = g.broadcast(row, [2, 2]).expect("right");
    let constant = g.constant(&[7.0, 8.0], [1, 2]).expect("right");
    let outputs = [
        ("x", x),
        ("again", x),
        ("scalar", scalar),
        ("wide", wide),
        ("also", wide),
        ("column", wide_column),
        ("row", wide_row),
        ("constant", constant),
    ];
    for (name, node) in outputs {
        g.output(name, node).expect("right");
    }
    let graph = g.finish().expect("right");
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: outputs of every kind");
            continue;
        };
        let mut run = graph.compile(&device).expect("compiles");
        run.set_input("x", &[1.0, 2.0, 3.0, 5.0]).expect("fits");
        run.run().expect("runs");
        let got: Vec<&[f32]> = outputs
            .iter()
            .map(|(name, _)| run.output(name).expect("ran"))
            .collect();
        let x: &[f32] = &[1.0, 2.0, 3.0, 5.0];
        assert_eq!(
            got,
            [
                x,
                x,
                &[11.0],
                &[11.0; 4],
                &[11.0; 4],
                &[3.0, 3.0, 8.0, 8.0],
                &[4.0, 7.0, 4.0, 7.0],
                &[7.0, 8.0]
            ],
            "{id}"
        );
    }
}

/// The stream has the graph while it runs, and gives it back with its outputs.
#[test]
fn a_compiled_graph_is_work_for_a_stream() {
    let graph = network();
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a graph on a stream");
            continue;
        };
        let mut run = graph.compile(&device).expect("compiles");
        for (name, len) in [
            ("one.weight", 32),
            ("one.bias", 8),
            ("two.weight", 32),
            ("two.bias", 4),
        ] {
            run.set_parameter(name, &vec![0.25; len]).expect("fits");
        }
        run.set_input("x", &[1.0, 2.0, 3.0, 4.0]).expect("fits");
        let stream = Stream::new().expect("a thread");
        let (mut run, stats) = stream.submit(run).wait();
        assert!(stats.expect("runs").launches > 0, "{id}");
        let streamed = run.output("y").expect("ran").to_vec();
        run.run().expect("runs");
        assert_eq!(run.output("y").expect("ran"), streamed, "{id}");
        let wanted = 8.0 * 0.25 * 2.75f32.tanh() + 0.25;
        assert!(
            (streamed[0] - wanted).abs() < 1e-5,
            "{id}: {} instead of {wanted}",
            streamed[0]
        );
    }
}
