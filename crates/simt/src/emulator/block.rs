//! The state of a resident block: its threads, its barrier, its shared memory.
use super::fault::CallSite;
use super::memory::POISON;
use super::worker::Worker;
use crate::Dim3;
use crate::host::operation::{BarrierOp, Collective};

/// States of a warp's lanes. Lanes that run or are ready are in none of the masks.
#[derive(Clone, Copy, Debug, Default)]
pub struct Warp {
    /// Returned from the kernel, or never there.
    pub exited: u32,
    pub at_barrier: u32,
    pub in_collective: u32,
    /// Whether all lanes in a collective are in one.
    pub uniform: bool,
}

#[derive(Debug)]
pub struct Thread {
    /// The coroutine it is suspended in; none before it has started.
    pub worker: Option<Worker>,
    /// The barrier or collective it waits at.
    pub place: Option<CallSite>,
    pub collective: Collective,
    pub mask: u32,
    pub value: u64,
    pub operand: u32,
    pub result: u64,
}

impl Thread {
    fn new() -> Self {
        Self { worker: None, place: None, collective: Collective::Sync, mask: 0, value: 0, operand: 0, result: 0 }
    }
}

#[derive(Debug)]
pub struct Barrier {
    pub arrived: u32,
    pub op: BarrierOp,
    pub place: Option<CallSite>,
    /// Threads whose predicate was true.
    pub count: u32,
    pub result: u32,
}

/// Unit of shared memory, so that vector accesses are aligned.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(16))]
struct Line([u8; 16]);

#[derive(Debug)]
pub struct Block {
    pub linear: u64,
    pub index: Dim3,
    pub threads: Vec<Thread>,
    pub warps: Vec<Warp>,
    pub live: u32,
    pub barrier: Barrier,
    shared: Vec<Line>,
}

impl Block {
    pub fn new(threads: u32, shared_bytes: u32) -> Self {
        Self {
            linear: 0,
            index: Dim3::new(0, 0, 0),
            threads: (0..threads).map(|_| Thread::new()).collect(),
            warps: vec![Warp::default(); threads.div_ceil(32) as usize],
            live: 0,
            barrier: Barrier { arrived: 0, op: BarrierOp::Plain, place: None, count: 0, result: 0 },
            shared: vec![Line([POISON; 16]); shared_bytes.div_ceil(16) as usize],
        }
    }

    /// Makes this slot the block `linear`, with all threads ready to start.
    pub fn start(&mut self, linear: u64, grid: Dim3) {
        self.linear = linear;
        self.index = grid.index(linear);
        self.live = self.threads.len() as u32;
        self.warps.fill(Warp::default());
        let lanes_of_last = self.threads.len() as u32 % 32;
        if let (Some(last), 1..) = (self.warps.last_mut(), lanes_of_last) {
            last.exited = !0 << lanes_of_last;
        }
        self.shared.fill(Line([POISON; 16]));
    }

    pub fn shared_pointer(&mut self) -> *mut u8 {
        self.shared.as_mut_ptr().cast()
    }

    /// Finds the first thread of the block that is in the chosen masks.
    pub fn find(&self, mask: impl Fn(&Warp) -> u32) -> Option<u32> {
        let lane = |(warp, lanes): (usize, u32)| (lanes != 0).then(|| warp as u32 * 32 + lanes.trailing_zeros());
        self.warps.iter().map(mask).enumerate().find_map(lane)
    }
}

/// Computes the results of a collective, lane by lane, over the lanes of `mask`.
///
/// A shuffle from a lane outside the mask, which the device leaves undefined, gives poison.
pub fn compute(lanes: &mut [Thread], mask: u32, op: Collective) {
    let members = move || (0..32u32).filter(move |lane| mask >> lane & 1 == 1);
    let value = |lanes: &[Thread], lane: u32| lanes[lane as usize].value;
    let fold = |lanes: &[Thread], f: fn(u32, u32) -> u32| {
        u64::from(members().map(|lane| lanes[lane as usize].value as u32).reduce(f).unwrap_or(0))
    };
    let from = |lanes: &[Thread], lane: u32| {
        if mask >> lane & 1 == 1 { lanes[lane as usize].value } else { u64::from_ne_bytes([POISON; 8]) }
    };
    let ballot =
        |lanes: &[Thread]| members().filter(|&lane| value(lanes, lane) != 0).fold(0, |b, lane| b | 1u64 << lane);
    let uniform = match op {
        Collective::Sync => Some(0),
        Collective::Ballot => Some(ballot(lanes)),
        Collective::Any => Some(u64::from(ballot(lanes) != 0)),
        Collective::All => Some(u64::from(ballot(lanes) == u64::from(mask))),
        Collective::Add => Some(fold(lanes, u32::wrapping_add)),
        Collective::Min => Some(fold(lanes, u32::min)),
        Collective::Max => Some(fold(lanes, u32::max)),
        Collective::And => Some(fold(lanes, |a, b| a & b)),
        Collective::Or => Some(fold(lanes, |a, b| a | b)),
        Collective::Xor => Some(fold(lanes, |a, b| a ^ b)),
        _ => None,
    };
    for lane in members() {
        let operand = lanes[lane as usize].operand;
        let own = value(lanes, lane);
        let result = match op {
            Collective::ShuffleIdx => from(lanes, operand & 31),
            Collective::ShuffleUp => lane.checked_sub(operand & 31).map_or(own, |source| from(lanes, source)),
            Collective::ShuffleDown => {
                let source = lane + (operand & 31);
                if source < 32 { from(lanes, source) } else { own }
            }
            Collective::ShuffleXor => from(lanes, lane ^ (operand & 31)),
            Collective::MatchAny => {
                members().filter(|&other| value(lanes, other) == own).fold(0, |b, other| b | 1u64 << other)
            }
            _ => uniform.unwrap_or(0),
        };
        lanes[lane as usize].result = result;
    }
}
