//! The inputs of a compiled graph by name, and which of them have been set.

use tectum::{DType, Element, Error, Executable, PlanBuilder, Result, View};

use super::{Graph, Node};

#[derive(Debug)]
pub(super) struct Inputs(Vec<Input>);

#[derive(Debug)]
struct Input {
    name: String,
    view: View,
    is_set: bool,
}

impl Inputs {
    /// Adds a plan input for each input of the graph, and its node to `feeds`. Those that no result
    /// depends on need not be set.
    pub fn new(
        graph: &Graph,
        results: impl Iterator<Item = Node>,
        plan: &mut PlanBuilder,
        feeds: &mut Vec<(Node, View)>,
    ) -> Result<Self> {
        let (mut inputs, needed) = (Vec::new(), graph.ancestors(results));
        for (name, node, shape) in graph.inputs() {
            let view = plan.input(name, graph.dtype(node)?, shape.len());
            inputs.push(Input {
                name: name.to_owned(),
                view,
                is_set: !needed.contains(&node),
            });
            feeds.push((node, view));
        }
        Ok(Self(inputs))
    }

    /// Fills an input of floats.
    pub fn set(&mut self, executable: &mut Executable, name: &str, data: &[f32]) -> Result<()> {
        let input = self.named(name)?;
        if input.view.dtype() != DType::F32 {
            let held = if input.view.dtype() == DType::I32 {
                "integers"
            } else {
                "row numbers"
            };
            return Err(Error::invalid(format!(
                "input {name} holds {held}; floats were given"
            )));
        }
        if data.len() != input.view.len() {
            return Err(Error::invalid(format!(
                "input {name} of {} elements filled with {}",
                input.view.len(),
                data.len()
            )));
        }
        executable.input::<f32>(input.view).copy_from_slice(data);
        input.is_set = true;
        Ok(())
    }

    /// Fills an input of row numbers or integers.
    pub fn set_words<T: Element>(
        &mut self,
        executable: &mut Executable,
        name: &str,
        data: &[T],
    ) -> Result<()> {
        let input = self.named(name)?;
        let view = input.view;
        if data.len() != view.len() || view.dtype() != T::DTYPE {
            let (len, dtype, given) = (view.len(), view.dtype().wgsl(), T::DTYPE.wgsl());
            return Err(Error::invalid(format!(
                "input {name} of {len} × {dtype} filled with {} × {given}",
                data.len()
            )));
        }
        executable.input::<T>(view).copy_from_slice(data);
        input.is_set = true;
        Ok(())
    }

    /// Refuses a run before every input that a result depends on has been set once.
    pub fn check(&self) -> Result<()> {
        match self.0.iter().find(|input| !input.is_set) {
            Some(input) => Err(Error::invalid(format!(
                "input {} has not been set",
                input.name
            ))),
            None => Ok(()),
        }
    }

    fn named(&mut self, name: &str) -> Result<&mut Input> {
        match self.0.iter().position(|input| input.name == name) {
            Some(place) => Ok(&mut self.0[place]),
            None => Err(unknown(
                "input",
                name,
                self.0.iter().map(|input| input.name.as_str()),
            )),
        }
    }
}

/// The error for a name that is not among those of its kind.
pub(super) fn unknown<'a>(kind: &str, name: &str, names: impl Iterator<Item = &'a str>) -> Error {
    Error::invalid(format!(
        "no {kind} {name}; there are {}",
        names.collect::<Vec<_>>().join(", ")
    ))
}
