//! Random numbers from a counter.

use tectum::DType;
use tectum::kernel::random::{normal, normal_table, philox, uniform};
use tectum::operation::random::KEY_WORDS;

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values,
    View,
};

/// A distribution that random numbers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// Uniform in [0, 1), a multiple of 2⁻²⁴.
    Uniform,
    /// Standard normal, a multiple of 2⁻²⁰.
    Normal,
}

impl Distribution {
    const ALL: [(Distribution, &'static str); 2] = [
        (Distribution::Uniform, "random_uniform"),
        (Distribution::Normal, "random_normal"),
    ];

    fn name(self) -> &'static str {
        let (_, name) = Self::ALL
            .into_iter()
            .find(|(distribution, _)| *distribution == self)
            .expect("invariant: the table has every distribution");
        name
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(distribution, _)| distribution)
    }

    /// The number that 32 random bits become.
    fn number(self, bits: u32) -> f32 {
        match self {
            Self::Uniform => uniform(bits),
            Self::Normal => normal(bits, normal_table()),
        }
    }
}

/// Numbers that a key determines: the same key gives the same numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Random {
    pub distribution: Distribution,
    pub key: Node,
}

impl Op for Random {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.key]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        // Words are two's complement: the lower 32 bits.
        let word = |place: usize| values[&self.key].data[place] as i64 as u32;
        let (key, stream, tick) = ([word(0), word(1)], word(2), word(3));
        Ok(Tensor::from_fn(shape, |place| {
            let words = philox([(place / 4) as u32, stream, tick, 0], key);
            f64::from(self.distribution.number(words[place % 4]))
        }))
    }

    /// The numbers do not change with anything that has a derivative.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let key = lowering.views[&self.key].reinterpret(DType::U32);
        match self.distribution {
            Distribution::Uniform => lowering.plan.uniform(key, y),
            Distribution::Normal => lowering.plan.normal(key, y),
        }
    }
}

impl Call for Random {
    const NAME: &'static str = "random";

    fn name(&self) -> Cow<'static, str> {
        self.distribution.name().into()
    }

    fn is_named(name: &str) -> bool {
        Distribution::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let distribution = Distribution::named(text.name).ok_or_else(|| text.unknown())?;
        builder.random(distribution, text.node(0)?, shape)
    }
}

impl GraphBuilder {
    /// Adds random numbers that a key determines: `[seed low, seed high, stream, tick]`. The same
    /// key gives the same bits on every device; another word in any place gives other numbers.
    ///
    /// # Shapes
    /// `key` \[4\] i32; gives f32 of `shape`.
    /// # Errors
    /// `Invalid` for a key of another shape or type, or a node that is not of this graph.
    /// # Source
    /// Philox4x32-10, as [`tectum::kernel::random`] describes.
    pub fn random(
        &mut self,
        distribution: Distribution,
        key: Node,
        shape: impl Into<Shape>,
    ) -> Result<Node> {
        let (name, shape) = (distribution.name(), shape.into());
        let words = self.shape_as(name, key, DType::I32)?;
        if words.elements() != Some(KEY_WORDS) {
            return Err(self.fault(format_args!(
                "{name}: key {words:?}; {KEY_WORDS} integers are needed"
            )));
        }
        self.check_shape(name, shape)?;
        Ok(self.push(Random { distribution, key }, shape))
    }
}
