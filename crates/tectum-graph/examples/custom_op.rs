//! A kernel of one's own as an operation of a graph: the squared ReLU max(x, 0)², with its
//! gradient.
//!
//! ```sh
//! cargo run -p tectum-graph --example custom_op -- cpu
//! ```

use std::sync::Arc;

use tectum::{Device, PlanBuilder, Result, TypedKernel, View};
use tectum_graph::{CustomOp, GraphBuilder, Node, Shape, Tensor};

tectum::kernel_arguments! {
    /// `y[i] = max(x[i], 0)²` for `i < n`.
    struct Arguments { read x: f32, write y: f32; n: usize }
}

#[derive(Debug)]
struct SquaredRelu(TypedKernel<Arguments>);

impl SquaredRelu {
    fn define() -> Result<Arc<Self>> {
        let kernel = Arguments::define("squared_relu_f32")
            .body(
                "@compute @workgroup_size(256)
                 fn main(@builtin(global_invocation_id) id: vec3<u32>) {
                     if id.x < params.n { let positive = max(x[id.x], 0.0); y[id.x] = positive * positive; }
                 }",
            )
            .native(|_, Arguments { x, y, n }| y[..n].iter_mut().zip(x).for_each(|(y, x)| *y = x.max(0.0) * x.max(0.0)))?;
        Ok(Arc::new(Self(kernel)))
    }
}

impl CustomOp for SquaredRelu {
    fn name(&self) -> &str {
        "squared_relu"
    }

    fn shape(&self, operands: &[Shape]) -> Result<Shape> {
        if let [x] = operands {
            Ok(*x)
        } else {
            Err(tectum::Error::invalid(format!(
                "{} operands; 1 is needed",
                operands.len()
            )))
        }
    }

    fn evaluate(&self, operands: &[&Tensor]) -> Result<Tensor> {
        let squares = operands[0].data().iter().map(|x| x.max(0.0).powi(2));
        Tensor::new(operands[0].shape(), squares.collect())
    }

    fn record(
        &self,
        plan: &mut PlanBuilder,
        operands: &[(View, Shape)],
        (y, _): (View, Shape),
    ) -> Result<()> {
        let (x, n) = (operands[0].0, y.len());
        plan.launch(&self.0, Arguments { x, y, n }, n.div_ceil(256) as u32)
    }

    /// 2 · max(x, 0) · g
    fn gradient(
        &self,
        graph: &mut GraphBuilder,
        operands: &[Node],
        _: Node,
        g: Node,
    ) -> Result<Vec<Option<Node>>> {
        let positive = graph.relu(operands[0])?;
        let slope = graph.scale(positive, 2.0)?;
        Ok(vec![Some(graph.mul(slope, g)?)])
    }
}

/// The loss Σ max(x·w, 0)² for w = [1, −1, 2], and its gradient at w.
pub fn loss_and_gradient(device: &Device) -> Result<(f32, Vec<f32>)> {
    let mut g = GraphBuilder::new();
    let (x, w) = (g.input("x", [2, 3])?, g.parameter("w", [3, 1])?);
    let product = g.matmul(x, w)?;
    let squares = g.custom(SquaredRelu::define()?, &[product])?;
    let loss = g.sum(squares)?;
    g.output("loss", loss)?;
    let mut run = g.finish()?.gradients(loss)?.compile(device)?;
    run.set_parameter("w", &[1.0, -1.0, 2.0])?;
    run.set_input("x", &[1.0, 2.0, 3.0, -4.0, 5.0, -6.0])?;
    run.run()?;
    Ok((run.output("loss")?[0], run.output("grad.w")?.to_vec()))
}

#[allow(dead_code, reason = "a test calls the function above")]
fn main() -> Result<()> {
    let id = std::env::args().nth(1).unwrap_or_else(|| "cpu".to_owned());
    let (loss, gradient) = loss_and_gradient(&Device::open(&id)?)?;
    println!("loss {loss}, gradient {gradient:?}");
    Ok(())
}
