//! How many workgroups a launch has, and how an entry point finds its items.
//!
//! Devices count at most [`MAX_GROUPS`] workgroups along x. Beyond it a launch folds into rows
//! along y, but only for a kernel whose items depend on the linear index of the prelude
//! [`Prelude::LinearIndex`](super::Prelude::LinearIndex): another kernel would compute the first
//! row again. A kernel with a loop over the stride of all invocations needs no more workgroups.

use naga::{BuiltIn, Expression, Statement, TypeInner};

use super::Kernel;
use crate::error::{Error, Result};

/// Invocations in a workgroup of the built-in kernels whose items are independent.
pub const WORKGROUP: u32 = 256;
/// Maximum workgroups of a launch along x, and along y.
pub const MAX_GROUPS: u32 = 65_535;

/// The struct of the prelude of linear indices.
const LINEAR_INVOCATION: &str = "TectumInvocation";
/// Its member that does not depend on the workgroup.
const LOCAL_MEMBER: u32 = 2;
/// The prelude's functions.
const LINEAR_FUNCTIONS: [&str; 2] = ["tectum_linear_index", "tectum_linear_workgroup"];

/// How many workgroups a launch has: a number, or what a number of items needs
/// ([`groups_for`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups(Count);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    Groups(u32),
    Items(usize),
}

impl From<u32> for Groups {
    fn from(groups: u32) -> Self {
        Self(Count::Groups(groups))
    }
}

/// As many workgroups as `items` items need, one an invocation. The launch divides by the workgroup
/// size of its kernel.
///
/// Beyond [`MAX_GROUPS`] workgroups, a kernel that indexes by the linear index is launched in rows
/// along y, and one that loops over its stride gets [`MAX_GROUPS`]. Others are refused.
pub fn groups_for(items: usize) -> Groups {
    Groups(Count::Items(items))
}

/// How the entry point of a kernel finds its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Indexing {
    /// From the number of the invocation or of the workgroup along x, y and z.
    Axes,
    /// As [`Indexing::Axes`], in loops that may step by the number of workgroups.
    Strided,
    /// From the linear index, which counts the rows of workgroups along y too.
    Linear,
}

impl Kernel {
    /// Workgroups of a launch along x and y.
    pub(crate) fn dispatch(&self, groups: Groups) -> Result<[u32; 2]> {
        let [size_x, size_y, size_z] = self.workgroup_size();
        let (count, request) = match groups.0 {
            Count::Groups(0) => {
                return Err(Error::invalid(format!(
                    "0 workgroups; 1 to {MAX_GROUPS} needed"
                )));
            }
            Count::Groups(count) => (u64::from(count), format!("{count} workgroups")),
            Count::Items(items) => {
                if size_y * size_z > 1 && self.indexing()? != Indexing::Linear {
                    return Err(Error::invalid(format!(
                        "a workgroup of [{size_x}, {size_y}, {size_z}] does not say how many items it computes; state the number of workgroups, or use the prelude LinearIndex"
                    )));
                }
                let size = u64::from(self.workgroup());
                let count = (items as u64).div_ceil(size).max(1);
                let request = format!("{items} items are {count} workgroups of {size}");
                (count, request)
            }
        };
        if count <= u64::from(MAX_GROUPS) {
            return Ok([count as u32, 1]);
        }
        match (self.indexing()?, groups.0) {
            (Indexing::Linear, _) => fold(count, self.workgroup()).ok_or_else(|| {
                Error::invalid(format!(
                    "{request}, more than a 32-bit index counts; record several launches"
                ))
            }),
            (Indexing::Strided, Count::Items(_)) => Ok([MAX_GROUPS, 1]),
            _ => Err(Error::invalid(format!(
                "{request}; 1 to {MAX_GROUPS} are possible unless the kernel takes its index from tectum_linear_index alone (prelude LinearIndex) or loops over its items by the stride num_workgroups.x * {size_x}"
            ))),
        }
    }

    /// How the entry point finds its items, by its module.
    fn indexing(&self) -> Result<Indexing> {
        let (module, _) = self.module()?;
        Ok(match entry_point(&module) {
            Some(entry) => indexing(&module, &entry.function),
            None => Indexing::Axes,
        })
    }
}

/// Rows of equal length with as few workgroups too many as possible; none if a 32-bit index cannot
/// count the invocations.
fn fold(groups: u64, workgroup: u32) -> Option<[u32; 2]> {
    let rows = groups.div_ceil(u64::from(MAX_GROUPS));
    let columns = groups.div_ceil(rows);
    let invocations = rows
        .checked_mul(columns)?
        .checked_mul(u64::from(workgroup))?;
    (rows <= u64::from(MAX_GROUPS) && invocations <= 1 << 32)
        .then_some([columns as u32, rows as u32])
}

/// The entry point of a kernel's module.
pub(super) fn entry_point(module: &naga::Module) -> Option<&naga::EntryPoint> {
    module
        .entry_points
        .iter()
        .find(|entry| entry.name == "main" && entry.stage == naga::ShaderStage::Compute)
}

fn indexing(module: &naga::Module, main: &naga::Function) -> Indexing {
    let (mut builtins, mut has_linear) = (Vec::new(), false);
    for argument in &main.arguments {
        let ty = &module.types[argument.ty];
        match (&argument.binding, &ty.inner) {
            (Some(naga::Binding::BuiltIn(builtin)), _) => builtins.push(*builtin),
            (_, TypeInner::Struct { .. }) if ty.name.as_deref() == Some(LINEAR_INVOCATION) => {
                has_linear = true;
            }
            (_, TypeInner::Struct { members, .. }) => {
                builtins.extend(members.iter().filter_map(|member| match member.binding {
                    Some(naga::Binding::BuiltIn(builtin)) => Some(builtin),
                    _ => None,
                }));
            }
            _ => {}
        }
    }
    // WGSL has no entry point with a built-in value twice: the struct's are not among them.
    let counts_along_x = builtins.contains(&BuiltIn::GlobalInvocationId);
    if has_linear && !counts_along_x && calls_linear(module, main) {
        Indexing::Linear
    } else if builtins.contains(&BuiltIn::NumWorkGroups) && has_loops(module) {
        Indexing::Strided
    } else {
        Indexing::Axes
    }
}

/// Whether a function calls one of the linear index, and has no other number of its workgroup.
fn calls_linear(module: &naga::Module, main: &naga::Function) -> bool {
    let is_invocation =
        |ty: naga::Handle<naga::Type>| module.types[ty].name.as_deref() == Some(LINEAR_INVOCATION);
    let is_linear = |function: &naga::Function| {
        let name = function.name.as_deref();
        name.is_some_and(|name| LINEAR_FUNCTIONS.contains(&name))
    };
    let reads_workgroup = main.expressions.iter().any(|(_, expression)| {
        let Expression::AccessIndex { base, index } = *expression else {
            return false;
        };
        matches!(main.expressions[base], Expression::FunctionArgument(argument)
            if is_invocation(main.arguments[argument as usize].ty) && index != LOCAL_MEMBER)
    });
    let has_copy = main
        .local_variables
        .iter()
        .any(|(_, variable)| is_invocation(variable.ty));
    let is_passed_on = module.functions.iter().any(|(_, function)| {
        !is_linear(function)
            && function
                .arguments
                .iter()
                .any(|argument| is_invocation(argument.ty))
    });
    let calls = |statement: &Statement| match statement {
        Statement::Call { function, .. } => is_linear(&module.functions[*function]),
        _ => false,
    };
    !reads_workgroup && !has_copy && !is_passed_on && any_statement(&main.body, &calls)
}

/// Whether a module has loops.
pub(super) fn has_loops(module: &naga::Module) -> bool {
    module
        .functions
        .iter()
        .map(|(_, function)| function)
        .chain(module.entry_points.iter().map(|entry| &entry.function))
        .any(|function| {
            any_statement(&function.body, &|statement| {
                matches!(statement, Statement::Loop { .. })
            })
        })
}

/// Whether a statement of a block or of a block within it has a property.
fn any_statement(block: &naga::Block, has: &dyn Fn(&Statement) -> bool) -> bool {
    block.iter().any(|statement| {
        has(statement)
            || match statement {
                Statement::Block(block) => any_statement(block, has),
                Statement::If { accept, reject, .. } => {
                    any_statement(accept, has) || any_statement(reject, has)
                }
                Statement::Switch { cases, .. } => {
                    cases.iter().any(|case| any_statement(&case.body, has))
                }
                Statement::Loop {
                    body, continuing, ..
                } => any_statement(body, has) || any_statement(continuing, has),
                _ => false,
            }
    })
}

/// The numbers after `@workgroup_size` in a body that nothing parses; none if they are not
/// literals.
pub(super) fn literal_workgroup_size(body: &str) -> Option<[u32; 3]> {
    let (_, rest) = body.split_once("@workgroup_size(")?;
    let (sizes, _) = rest.split_once(')')?;
    let mut size = [1; 3];
    for (index, axis) in sizes.split(',').enumerate() {
        *size.get_mut(index)? = axis.trim().trim_end_matches('u').parse().ok()?;
    }
    Some(size)
}

#[cfg(test)]
mod tests;
