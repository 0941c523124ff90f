use tectum::{Activation, DType, Device, PlanBuilder, Stream};

use crate::{AdamW, Dim, Graph, GraphBuilder, Heads, Node, Shape, Tensor, Trainer};

type Mistake = fn(&mut GraphBuilder, [Node; 4]) -> tectum::Result<()>;

/// Each mistake on x [4, 128], w [64, 8], row [1, 128] and column [4, 1], with the whole message.
#[test]
fn mistakes_are_found_where_they_are_made_with_both_shapes_and_the_node() {
    let cases: &[(Mistake, &str)] = &[
        (
            |g, [x, w, ..]| g.matmul(x, w).map(drop),
            "matmul: lhs [4, 128], rhs [64, 8]: inner sizes 128 and 64 differ (node 4)",
        ),
        (
            |g, [x, _, row, _]| g.matmul(x.transpose(), row).map(drop),
            "matmul: lhs [128, 4], rhs [1, 128]: inner sizes 4 and 1 differ (node 4)",
        ),
        (
            |g, [x, w, ..]| g.add(x, w).map(drop),
            "add: lhs [4, 128], rhs [64, 8]: neither repeats to the other (node 4)",
        ),
        (
            |g, [_, w, row, _]| g.sub(row, w).map(drop),
            "sub: lhs [1, 128], rhs [64, 8]: neither repeats to the other (node 4)",
        ),
        (
            |g, [x, _, row, _]| g.mse(x, row).map(drop),
            "mse: prediction [4, 128], target [1, 128]: shapes differ (node 4)",
        ),
        (
            |g, [x, ..]| g.scale(x, f32::NAN).map(drop),
            "scale: factor NaN is not finite (node 4)",
        ),
        (
            |g, _| g.input("x", [1, 1]).map(drop),
            "input x: the name is taken (node 4)",
        ),
        (
            |g, _| g.parameter("x", [1, 1]).map(drop),
            "parameter x: the name is taken (node 4)",
        ),
        (
            |g, _| g.input("z", [0, 3]).map(drop),
            "input z: [0, 3] holds no elements (node 4)",
        ),
        (
            |g, _| g.input("z", [1 << 20, 1 << 20]).map(drop),
            "input z: [1048576, 1048576] holds more than 4294967295 elements (node 4)",
        ),
        (
            |g, _| g.constant(&[1.0], [1, 2]).map(drop),
            "constant: 1 elements given for [1, 2] (node 4)",
        ),
        (
            |g, _| {
                g.tanh(GraphBuilder::new().input("other", [1, 2])?)
                    .map(drop)
            },
            "activate: node 0 is of another graph",
        ),
        (
            |g, [x, ..]| g.output("y", x).and_then(|()| g.output("y", x)),
            "output y: the name is taken (node 4)",
        ),
    ];
    for (mistake, message) in cases {
        let mut g = GraphBuilder::new();
        let nodes = [
            ("x", [4, 128]),
            ("w", [64, 8]),
            ("row", [1, 128]),
            ("column", [4, 1]),
        ]
        .map(|(name, shape)| g.input(name, shape).expect("right"));
        assert_eq!(
            mistake(&mut g, nodes).expect_err(message).to_string(),
            *message
        );
    }
    assert_eq!(
        GraphBuilder::new().finish().expect_err("empty").to_string(),
        "graph: no outputs"
    );
}

fn small() -> (Graph, [Node; 3]) {
    let mut g = GraphBuilder::new();
    let (x, w) = (
        g.input("x", [1, 2]).expect("right"),
        g.parameter("w", [2, 1]).expect("right"),
    );
    let y = g.matmul(x, w).expect("right");
    g.output("y", y).expect("right");
    (g.finish().expect("right"), [x, w, y])
}

#[test]
fn what_cannot_be_differentiated_is_refused() {
    let (graph, [x, _, y]) = small();
    let message = |graph: &Graph, node| graph.gradients(node).expect_err("refused").to_string();
    assert_eq!(
        message(&graph, x),
        "gradients: the loss is [1, 2] f32, [1, 1] f32 is needed (node 0)"
    );
    assert_eq!(
        graph.output("z").expect_err("absent").to_string(),
        "no output z; there are y"
    );
    let mut g = GraphBuilder::from(graph);
    let loss = g.tanh(y).expect("right");
    g.output("loss", loss).expect("right");
    let fused = {
        let mut only = g.finish().expect("right");
        only.outputs.retain(|(name, _)| name == "loss");
        only.prune().fuse()
    };
    assert_eq!(
        message(&fused, loss),
        "gradients: node 3: what is fused has no derivative; differentiate before optimizing"
    );
}

#[test]
fn a_gradient_through_caches_or_of_an_unknown_size_is_refused() {
    let mut g = GraphBuilder::new();
    let (x, spans) = (
        g.parameter("x", [1, 2, 4]).expect("right"),
        g.indices("spans", [1, 2]).expect("right"),
    );
    let caches = ["keys", "values"].map(|name| g.state(name, [1, 8, 4]).expect("right"));
    let y = g
        .attention_cached(
            [x; 3],
            caches,
            spans,
            Heads {
                causal: true,
                ..Heads::new(1, 4)
            },
        )
        .expect("right");
    let loss = g.sum(y).expect("right");
    g.output("loss", loss).expect("right");
    let error = g
        .finish()
        .expect("right")
        .gradients(loss)
        .expect_err("refused");
    assert_eq!(
        error.to_string(),
        "gradients: node 4: attention_cached has no derivative: it changes its caches"
    );

    let mut g = GraphBuilder::new();
    let (x, w) = (
        g.input("x", [Dim::from(1), 'T'.into(), 4.into()])
            .expect("right"),
        g.parameter("w", [4, 4]).expect("right"),
    );
    let q = g.matmul(x, w).expect("right");
    let y = g
        .attention([q, x, x], None, Heads::new(1, 4))
        .expect("right");
    let loss = g.sum(y).expect("right");
    g.output("loss", loss).expect("right");
    let graph = g.finish().expect("right");
    let error = graph.gradients(loss).expect_err("refused");
    assert_eq!(
        error.to_string(),
        "gradients: node 3: the gradient of attention needs sizes; bind the letters first"
    );
    assert!(
        graph
            .bind(&[('T', 3)])
            .and_then(|graph| graph.gradients(loss))
            .is_ok()
    );
}

#[test]
fn bindings_that_do_not_fit_are_refused() {
    let (graph, [x, w, y]) = small();
    let mut plan = PlanBuilder::new("p");
    let (two, words) = (
        plan.input("two", DType::F32, 2),
        plan.input("words", DType::U32, 2),
    );
    let out = plan.output("out", DType::F32, 1);
    let cases = [
        (
            vec![(x, two)],
            vec![(y, out)],
            "w [2, 1] is needed and not fed (node 1)",
        ),
        (
            vec![(x, two), (x, two)],
            vec![(y, out)],
            "node 0 is fed twice",
        ),
        (
            vec![(y, out)],
            vec![(y, out)],
            "node 2 is fed but is no input or parameter",
        ),
        (
            vec![(x, words)],
            vec![(y, out)],
            "feed of node 0, [1, 2] f32: a view of 2 × u32 does not fit",
        ),
        (
            vec![(x, two), (w, two)],
            vec![(x, two)],
            "node 0 is no output",
        ),
        (
            vec![(x, two), (w, two)],
            vec![(y, two)],
            "output of node 2, [1, 1] f32: a view of 2 × f32 does not fit",
        ),
    ];
    for (feeds, outputs, message) in cases {
        assert_eq!(
            graph
                .record(&mut plan, &feeds, &outputs)
                .expect_err(message)
                .to_string(),
            message
        );
    }
    graph
        .record(&mut plan, &[(x, two), (w, two)], &[(y, out)])
        .expect("fits");
}

#[test]
fn tensors_that_do_not_fit_are_refused() {
    let (graph, [x, w, _]) = small();
    let tensor = |len: usize| Tensor::new([1, len], vec![0.0; len]).expect("fits");
    let message =
        |feeds: &[(Node, Tensor)]| graph.evaluate(feeds).expect_err("refused").to_string();
    assert_eq!(
        message(&[(x, tensor(2))]),
        "evaluate: w [2, 1] is not fed (node 1)"
    );
    assert_eq!(
        message(&[(x, tensor(2)), (w, tensor(2))]),
        "evaluate: node 1 of [2, 1] fed with [1, 2] or twice"
    );
    assert_eq!(
        Tensor::new([2, 2], vec![1.0])
            .expect_err("short")
            .to_string(),
        "tensor: 1 elements given for [2, 2]"
    );
    let mut run = graph
        .compile(&Device::open("cpu").expect("cpu"))
        .expect("compiles");
    assert_eq!(
        run.set_input("x", &[1.0]).expect_err("short").to_string(),
        "input x of 2 elements filled with 1"
    );
    assert_eq!(
        run.set_input("z", &[1.0]).expect_err("absent").to_string(),
        "no input z; there are x"
    );
    assert_eq!(
        run.set_parameter("z", &[1.0])
            .expect_err("absent")
            .to_string(),
        "no parameter z; there are w"
    );
    assert_eq!(
        run.output("y").expect_err("early").to_string(),
        "output y: the graph has not run yet"
    );
    assert_eq!(
        run.run().expect_err("early").to_string(),
        "input x has not been set"
    );
    let (returned, result) = Stream::new().expect("starts").submit(run).wait();
    assert_eq!(
        result.expect_err("early").to_string(),
        "input x has not been set"
    );
    run = returned;
    run.set_input("x", &[1.0, 2.0]).expect("fits");
    run.set_parameter("w", &[3.0, 4.0]).expect("fits");
    run.run().expect("all inputs are set");
    assert_eq!(run.output("y").expect("ran"), [11.0]);
}

/// Parameters are not zero by default: a run names those that an output depends on and that were
/// never set, in every way to run.
#[test]
fn runs_without_parameters_are_refused_with_their_names() {
    let device = Device::open("cpu").expect("cpu");
    let mut g = GraphBuilder::new();
    let x = g.input("x", [1, 2]).expect("right");
    let mut y = x;
    for layer in 0..5 {
        y = g
            .dense(&format!("layer{layer}"), y, 2, Activation::None)
            .expect("right");
    }
    g.parameter("unread", [3]).expect("right");
    g.output("y", y).expect("right");
    let graph = g.finish().expect("right");
    for compiled in [graph.compile(&device), graph.compile_unfused(&device)] {
        let mut run = compiled.expect("compiles");
        run.set_input("x", &[1.0, 2.0]).expect("fits");
        let all = "parameters layer0.weight, layer0.bias, layer1.weight, layer1.bias, layer2.weight, \
                   layer2.bias, layer3.weight, layer3.bias and 2 more have not been set";
        assert_eq!(run.run().expect_err("not set").to_string(), all);
        assert_eq!(run.trace().expect_err("not set").to_string(), all);
        let (mut run, result) = Stream::new().expect("starts").submit(run).wait();
        assert_eq!(result.expect_err("not set").to_string(), all);
        for layer in 0..5 {
            run.set_parameter(&format!("layer{layer}.weight"), &[1.0, 0.0, 0.0, 1.0])
                .expect("fits");
        }
        for layer in 0..4 {
            run.set_parameter(&format!("layer{layer}.bias"), &[0.5, 0.0])
                .expect("fits");
        }
        // A parameter that is refused is not set.
        run.set_parameter("layer4.bias", &[1.0])
            .expect_err("too short");
        assert_eq!(
            run.run().expect_err("one is missing").to_string(),
            "parameter layer4.bias has not been set"
        );
        run.set_parameter("layer4.bias", &[0.0, -1.0])
            .expect("fits");
        run.run().expect("all that are read are set");
        assert_eq!(run.output("y").expect("ran"), [3.0, 1.0]);
    }
}

#[test]
#[should_panic(expected = "a shape of 9 dimensions; at most 8 are possible")]
fn a_shape_of_too_many_dimensions_panics_with_its_size() {
    let _ = Shape::of(&[Dim::Size(1); 9]);
}

#[test]
fn a_trainer_whose_inputs_are_not_set_takes_no_step() {
    let mut builder = GraphBuilder::new();
    let (x, w) = (
        builder.input("x", [1, 1]).expect("fits"),
        builder.parameter("w", [1, 1]).expect("fits"),
    );
    let y = builder.mul(x, w).expect("fits");
    builder.output("loss", y).expect("fits");
    let graph = builder.finish().expect("complete");
    let mut trainer = Trainer::new(
        &graph,
        y,
        AdamW::default(),
        &Device::open("cpu").expect("cpu"),
    )
    .expect("compiles");
    assert_eq!(
        trainer.step().expect_err("early").to_string(),
        "input x has not been set"
    );
    assert_eq!(trainer.steps(), 0);
    trainer.set_input("x", &[1.0]).expect("fits");
    trainer.step().expect("all inputs are set");
}
