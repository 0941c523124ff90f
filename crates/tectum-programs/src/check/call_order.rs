//! Which function calls which: recursion and depth.

use super::CheckError;
use super::flow::Flow;
use crate::Program;

/// Maximum depth of calls.
pub const MAX_DEPTH: usize = 256;

/// The functions, callees before their callers.
pub struct CallOrder(pub Vec<usize>);

/// Orders the functions, or returns the call that closes a cycle or is too deep.
pub fn call_order(flow: &Flow, program: &Program) -> Result<CallOrder, CheckError> {
    let calls: Vec<Vec<(usize, usize)>> = (0..flow.functions.len())
        .map(|function| calls(flow, program, function))
        .collect();
    let mut callers = vec![Vec::new(); calls.len()];
    for (function, called) in calls.iter().enumerate() {
        called
            .iter()
            .for_each(|(_, callee)| callers[*callee].push(function));
    }
    // Functions whose callees are all ordered come next; functions never reached this way are
    // recursive.
    let mut open: Vec<usize> = calls.iter().map(Vec::len).collect();
    let mut order: Vec<usize> = (0..calls.len())
        .filter(|function| open[*function] == 0)
        .collect();
    let mut depth = vec![0; calls.len()];
    let mut at = 0;
    while let Some(&function) = order.get(at) {
        at += 1;
        if let Some((instruction, _)) = calls[function]
            .iter()
            .find(|(_, callee)| depth[*callee] >= MAX_DEPTH)
        {
            return Err(CheckError {
                instruction: *instruction,
                message: format!("calls nest deeper than {MAX_DEPTH}"),
            });
        }
        depth[function] = calls[function]
            .iter()
            .map(|(_, callee)| depth[*callee] + 1)
            .max()
            .unwrap_or(0);
        for caller in &callers[function] {
            open[*caller] -= 1;
            if open[*caller] == 0 {
                order.push(*caller);
            }
        }
    }
    match find_cycle(&calls, &callers, &mut open) {
        None => Ok(CallOrder(order)),
        Some(instruction) => Err(CheckError {
            instruction,
            message: "the call is part of a recursion".to_owned(),
        }),
    }
}

/// The first call between the remaining functions after those without remaining callers are removed
/// too.
fn find_cycle(
    calls: &[Vec<(usize, usize)>],
    callers: &[Vec<usize>],
    open: &mut [usize],
) -> Option<usize> {
    let rest: Vec<bool> = open.iter().map(|calls| *calls > 0).collect();
    let mut called: Vec<usize> = callers
        .iter()
        .map(|callers| callers.iter().filter(|caller| rest[**caller]).count())
        .collect();
    let mut outer: Vec<usize> = (0..calls.len())
        .filter(|function| rest[*function] && called[*function] == 0)
        .collect();
    while let Some(function) = outer.pop() {
        open[function] = 0;
        for (_, callee) in calls[function].iter().filter(|(_, callee)| rest[*callee]) {
            called[*callee] -= 1;
            if called[*callee] == 0 {
                outer.push(*callee);
            }
        }
    }
    let inside = (0..calls.len())
        .filter(|function| open[*function] > 0)
        .flat_map(|function| &calls[function]);
    inside
        .filter(|(_, callee)| open[*callee] > 0)
        .map(|(instruction, _)| *instruction)
        .min()
}

/// The calls of a function: instruction and callee.
fn calls(flow: &Flow, program: &Program, function: usize) -> Vec<(usize, usize)> {
    let code = flow.functions[function]
        .blocks
        .iter()
        .flat_map(|block| block.code(program));
    code.filter_map(|(index, instruction)| Some((index, flow.callee(instruction)?)))
        .collect()
}
