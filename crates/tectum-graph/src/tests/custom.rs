use std::sync::Arc;

use tectum::{Device, Error, PlanBuilder, Result, TypedKernel, View};

use super::derivatives;
use super::random_graph::random_feeds;
use crate::{AdamW, CustomOp, Dim, Graph, GraphBuilder, Node, Shape, Tensor, Trainer};

tectum::kernel_arguments! {
    /// `y[i] = factor · a[i] · b[i]` for `i < n`.
    struct Arguments { read a: f32, read b: f32, write y: f32; n: usize, factor: f32 }
}

/// What the operation does wrong, for refusals.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mistake {
    None,
    NoGradient,
    OneGradient,
    WideGradient,
    WideMeaning,
    NoLaunch,
}

/// factor · a · b of two values of one shape; its gradients are operations of the same kind.
#[derive(Debug, Clone)]
struct Product {
    name: &'static str,
    kernel: Arc<TypedKernel<Arguments>>,
    factor: f32,
    mistake: Mistake,
}

impl Product {
    fn new(factor: f32, mistake: Mistake) -> Arc<Self> {
        let body = "@compute @workgroup_size(256)\nfn main(@builtin(global_invocation_id) id: vec3<u32>) {\n    if id.x < params.n { y[id.x] = params.factor * a[id.x] * b[id.x]; }\n}";
        let kernel = Arguments::define("product_of_a_user").body(body).native(
            |_, Arguments { a, b, y, n, factor }| {
                y[..n]
                    .iter_mut()
                    .zip(a.iter().zip(b))
                    .for_each(|(y, (a, b))| *y = factor * a * b);
            },
        );
        Arc::new(Self {
            name: "product",
            kernel: Arc::new(kernel.expect("valid")),
            factor,
            mistake,
        })
    }
}

impl CustomOp for Product {
    fn name(&self) -> &str {
        self.name
    }

    fn shape(&self, operands: &[Shape]) -> Result<Shape> {
        match operands {
            [a, b] if a == b => Ok(*a),
            _ => Err(Error::invalid(format!(
                "operands {operands:?}: two of one shape are needed"
            ))),
        }
    }

    fn evaluate(&self, operands: &[&Tensor]) -> Result<Tensor> {
        let data = operands[0]
            .data()
            .iter()
            .zip(operands[1].data())
            .map(|(a, b)| f64::from(self.factor) * a * b)
            .collect();
        let shape = if self.mistake == Mistake::WideMeaning {
            Shape::from([6, 1])
        } else {
            operands[0].shape()
        };
        Tensor::new(shape, data)
    }

    fn record(
        &self,
        plan: &mut PlanBuilder,
        operands: &[(View, Shape)],
        (y, shape): (View, Shape),
    ) -> Result<()> {
        assert_eq!((operands[0].1, y.len()), (shape, shape.len()));
        if self.mistake == Mistake::NoLaunch {
            return Ok(());
        }
        let n = y.len();
        plan.launch(
            &self.kernel,
            Arguments {
                a: operands[0].0,
                b: operands[1].0,
                y,
                n,
                factor: self.factor,
            },
            n.div_ceil(256) as u32,
        )
    }

    fn gradient(
        &self,
        builder: &mut GraphBuilder,
        operands: &[Node],
        _: Node,
        g: Node,
    ) -> Result<Vec<Option<Node>>> {
        let same: Arc<dyn CustomOp> = Arc::new(self.clone());
        let mut at = |other: Node| builder.custom(same.clone(), &[g, other]).map(Some);
        match self.mistake {
            Mistake::NoGradient => Err(Error::unsupported("it has no gradient")),
            Mistake::OneGradient => Ok(vec![at(operands[1])?]),
            Mistake::WideGradient => {
                let wide = builder.sum(operands[0])?;
                Ok(vec![Some(wide), None])
            }
            _ => Ok(vec![at(operands[1])?, at(operands[0])?]),
        }
    }
}

/// An operation with neither kernel nor gradient of its own.
#[derive(Debug)]
struct Bare;

impl CustomOp for Bare {
    fn name(&self) -> &str {
        "bare"
    }

    fn shape(&self, operands: &[Shape]) -> Result<Shape> {
        Ok(operands[0])
    }

    fn evaluate(&self, operands: &[&Tensor]) -> Result<Tensor> {
        Ok(operands[0].clone())
    }

    fn record(
        &self,
        plan: &mut PlanBuilder,
        operands: &[(View, Shape)],
        (y, _): (View, Shape),
    ) -> Result<()> {
        plan.copy(operands[0].0, y)
    }
}

/// Σ tanh(product(x, product(p, p)))², with values that passes remove.
fn network() -> (Graph, Node) {
    let (mut g, op) = (GraphBuilder::new(), Product::new(1.5, Mistake::None));
    let (x, p) = (
        g.input("x", [3, 100]).expect("right"),
        g.parameter("p", [3, 100]).expect("right"),
    );
    let square = g.custom(op.clone(), &[p, p]).expect("right");
    let mixed = g.custom(op.clone(), &[x, square]).expect("right");
    g.custom(op, &[mixed, mixed]).expect("right");
    let curved = g.tanh(mixed).expect("right");
    let squared = g.mul(curved, curved).expect("right");
    let loss = g.sum(squared).expect("right");
    g.output("loss", loss).expect("right");
    g.output("mixed", mixed).expect("right");
    (g.finish().expect("right"), loss)
}

#[test]
fn passes_treat_a_custom_operation_as_opaque_and_pure() {
    let (mut g, op, other) = (
        GraphBuilder::new(),
        Product::new(2.0, Mistake::None),
        Product::new(3.0, Mistake::None),
    );
    let (x, p) = (
        g.input("x", [1, 2]).expect("right"),
        g.parameter("p", [1, 2]).expect("right"),
    );
    let constant = g.constant(&[2.0, 5.0], [1, 2]).expect("right");
    let mut add =
        |op: &Arc<Product>, operands: [Node; 2]| g.custom(op.clone(), &operands).expect("right");
    // The same twice, one with other settings, one that nothing reads, one of constants.
    let (first, again, differs) = (add(&op, [x, p]), add(&op, [x, p]), add(&other, [x, p]));
    add(&op, [p, p]);
    let folded = add(&op, [constant, constant]);
    let sum = g.add(first, again).expect("right");
    let sum = g.add(sum, differs).expect("right");
    let y = g.add(sum, folded).expect("right");
    g.output("y", y).expect("right");
    let graph = g.finish().expect("right");
    let text = "%0 = input x [1, 2]\n%1 = parameter p [1, 2]\n%3 = custom(product, %0, %1) [1, 2]\n%5 = custom(product, %0, %1) [1, 2]\n%7 = constant(8, 50) [1, 2]\n";
    let optimized = graph.optimize().describe();
    let (kept, chain) = optimized.split_at(text.len());
    assert_eq!(kept, text);
    assert!(
        chain.starts_with("%10 = chain(") && chain.contains("add(%3, %3)") && chain.contains("%5"),
        "{chain}"
    );

    let error = Graph::parse(&graph.describe())
        .expect_err("no operation is given")
        .to_string();
    assert_eq!(
        error,
        "line 4, `%3 = custom(product, %0, %1) [1, 2]`: no custom operation product is given; `Graph::parse_with` takes those of a text"
    );
    let read = Graph::parse_with(&graph.describe(), &[Arc::new(Bare), op]).expect("given");
    assert_eq!(read.describe(), graph.describe());
}

/// Greatest relative error of a product of three factors in f32, and of what follows it.
const TOLERANCE: f64 = 1e-5;

/// As a case of conformance: the meaning in float64, against every device with and without passes,
/// gradients included.
#[test]
fn a_custom_operation_has_its_meaning_on_every_device() {
    let (graph, loss) = network();
    let graph = graph.gradients(loss).expect("differentiates");
    let feeds = random_feeds(&graph, 1);
    let wanted = graph.evaluate(&feeds).expect("fed");
    assert!(
        graph
            .optimize()
            .evaluate(&feeds)
            .expect("fed")
            .iter()
            .zip(&wanted)
            .all(|(a, b)| close(a.data().iter().copied(), b))
    );
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: a custom operation");
            continue;
        };
        for mut run in [graph.compile(&device), graph.compile_unfused(&device)]
            .map(|run| run.expect("compiles"))
        {
            let floats = |index: usize| {
                feeds[index]
                    .1
                    .data()
                    .iter()
                    .map(|value| *value as f32)
                    .collect::<Vec<_>>()
            };
            run.set_input("x", &floats(0)).expect("fits");
            run.set_parameter("p", &floats(1)).expect("fits");
            run.run().expect("runs");
            for ((name, ..), wanted) in graph.outputs().zip(&wanted) {
                let found = run.output(name).expect("ran");
                assert!(
                    close(found.iter().map(|value| f64::from(*value)), wanted),
                    "{id}: {name}"
                );
            }
        }
    }
}

fn close(found: impl Iterator<Item = f64>, wanted: &Tensor) -> bool {
    found
        .zip(wanted.data())
        .all(|(a, b)| (a - b).abs() <= TOLERANCE * (1.0 + b.abs()))
}

/// The gradient is an operation of the same kind, so that it has a gradient too.
#[test]
fn gradients_through_a_custom_operation_match_central_differences() {
    let (graph, loss) = network();
    assert_eq!(derivatives::check(&graph, "loss", "grad.", 1), (300, 0));
    let first = graph.gradients(loss).expect("differentiates");
    let node = first.output("grad.p").expect("there");
    let mut g = GraphBuilder::from(first);
    assert_eq!(g.shape_of(node).expect("there"), [3, 100]);
    let square = g.mul(node, node).expect("right");
    let roughness = g.sum(square).expect("right");
    g.output("roughness", roughness).expect("right");
    assert_eq!(
        derivatives::check(&g.finish().expect("right"), "roughness", "grad.grad.", 1),
        (300, 0)
    );
}

#[test]
fn a_network_with_a_custom_operation_trains() {
    let (graph, loss) = network();
    let optimizer = AdamW {
        learning_rate: 0.05.into(),
        weight_decay: 0.0,
        ..AdamW::default()
    };
    let mut trainer = Trainer::new(&graph, loss, optimizer, &Device::open("cpu").expect("cpu"))
        .expect("compiles");
    trainer.set_parameter("p", &[0.8; 300]).expect("fits");
    trainer.set_input("x", &[1.0; 300]).expect("fits");
    let first = trainer.step().expect("runs");
    let last = (0..30)
        .map(|_| trainer.step().expect("runs"))
        .last()
        .expect("steps");
    assert!(last < 0.2 * first, "{first} → {last}");
}

#[test]
fn a_custom_operation_is_refused_where_it_does_not_fit() {
    let mut g = GraphBuilder::new();
    let (x, wide) = (
        g.input("x", [2, 3]).expect("right"),
        g.input("wide", [3, 2]).expect("right"),
    );
    let rows = g.indices("rows", [2, 3]).expect("right");
    let op = Product::new(1.0, Mistake::None);
    let message = |error: Error| error.to_string();
    let mut refused = |op: Product, operands: &[Node]| {
        g.custom(Arc::new(op), operands)
            .map_err(message)
            .expect_err("refused")
    };
    let needed = "two of one shape are needed (node 3)";
    assert_eq!(
        refused(Product::clone(&op), &[x, wide]),
        format!("custom product: operands [[2, 3], [3, 2]]: {needed}")
    );
    assert_eq!(
        refused(Product::clone(&op), &[]),
        format!("custom product: operands []: {needed}")
    );
    assert_eq!(
        refused(Product::clone(&op), &[x, rows]),
        "custom product: operand 2 [2, 3] is u32, f32 is needed (node 3)"
    );
    let foreign = GraphBuilder::new().input("x", [2, 3]).expect("right");
    assert_eq!(
        refused(Product::clone(&op), &[x, foreign]),
        "custom product: node 0 is of another graph"
    );
    for name in ["", "a b", "f(x)", "a,b"] {
        let error = refused(
            Product {
                name,
                ..Product::clone(&op)
            },
            &[x, x],
        );
        assert_eq!(
            error,
            format!("custom {name:?}: a name of letters, digits and _ is needed (node 3)")
        );
    }
}

#[test]
fn a_mistake_in_a_custom_operation_names_it() {
    // On some of the input and the parameter.
    let build = |op: Arc<dyn CustomOp>, operands: std::ops::Range<usize>| {
        let mut g = GraphBuilder::new();
        let (x, p) = (
            g.input("x", [2, 3]).expect("right"),
            g.parameter("p", [2, 3]).expect("right"),
        );
        let y = g.custom(op, &[x, p][operands]).expect("right");
        let loss = g.sum(y).expect("right");
        g.output("loss", loss).expect("right");
        (g.finish().expect("right"), loss)
    };
    for (mistake, expected) in [
        (
            Mistake::NoGradient,
            "gradients: node 2: custom product: it has no gradient",
        ),
        (
            Mistake::OneGradient,
            "gradients: node 2: custom product: 1 gradients for 2 operands",
        ),
        (
            Mistake::WideGradient,
            "gradients: node 2: custom product: the gradient at operand 0 [2, 3] is [1, 1]",
        ),
    ] {
        let (graph, loss) = build(Product::new(1.0, mistake), 0..2);
        assert_eq!(
            graph.gradients(loss).expect_err("refused").to_string(),
            expected
        );
    }
    // Without a gradient of its own, and on no path to a parameter.
    let (graph, loss) = build(Arc::new(Bare), 1..2);
    let error = graph.gradients(loss).expect_err("refused");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            tectum::ErrorKind::Unsupported,
            "gradients: node 2: custom bare: it has no gradient".to_owned()
        )
    );
    let (graph, loss) = build(Arc::new(Bare), 0..1);
    assert!(
        graph.gradients(loss).is_ok(),
        "no parameter passes through it"
    );

    let (graph, _) = build(Product::new(1.0, Mistake::WideMeaning), 0..2);
    let error = graph
        .evaluate(&random_feeds(&graph, 1))
        .expect_err("refused")
        .to_string();
    assert_eq!(
        error,
        "evaluate: custom product: its meaning is [6, 1], its shape rule gives [2, 3] (node 2)"
    );
    let (graph, _) = build(Product::new(1.0, Mistake::NoLaunch), 0..2);
    let error = graph
        .compile(&Device::open("cpu").expect("cpu"))
        .expect_err("refused")
        .to_string();
    assert!(
        error.contains("graph: node 2: custom product: no launch writes its value"),
        "{error}"
    );
}

#[test]
fn letters_of_a_custom_operation_are_bound_by_its_rule() {
    let (mut g, op) = (GraphBuilder::new(), Product::new(1.0, Mistake::None));
    let shape = [Dim::from('T'), 4.into()];
    let (x, y) = (
        g.input("x", shape).expect("right"),
        g.input("y", shape).expect("right"),
    );
    let product = g.custom(op, &[x, y]).expect("right");
    g.output("product", product).expect("right");
    let graph = g.finish().expect("right");
    assert!(
        graph
            .describe()
            .contains("%2 = custom(product, %0, %1) [T, 4]")
    );
    let bound = graph.bind(&[('T', 7)]).expect("fits");
    let feeds = random_feeds(&bound, 2);
    assert_eq!(bound.evaluate(&feeds).expect("fed")[0].shape(), [7, 4]);
    assert!(bound.compile(&Device::open("cpu").expect("cpu")).is_ok());
}
