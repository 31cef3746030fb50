//! Unpacking of blocked gzip by several threads.
//!
//! One thread reads members, which contain their sizes, and hands out groups of them. Other threads unpack the groups,
//! and the reader takes these in order.

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::unpack::Members;

/// Bytes per group of members, about.
const GROUP: usize = 1 << 17;
/// Groups in flight per thread.
const GROUPS_PER_THREAD: usize = 4;
/// Bytes of a member's header up to its size, if the size is the only extra field.
const HEADER: usize = 18;

/// Whether gzip with this begin contains the sizes of its members.
pub(super) fn is_blocked(head: &[u8]) -> bool {
    head.len() >= HEADER && head[3] & 4 != 0 && head[10..16] == [6, 0, b'B', b'C', 2, 0]
}

/// Text of a group, and the error that ended it.
type Group = (Vec<u8>, Option<io::Error>);

/// Text, in order.
pub(super) struct Unpacked<'a> {
    input: Option<Box<dyn Read + Send + 'a>>,
    jobs: Option<SyncSender<(Vec<u8>, SyncSender<Group>)>>,
    /// Groups in flight, in order.
    pending: std::collections::VecDeque<Receiver<Group>>,
    most: usize,
    current: Vec<u8>,
    at: usize,
    error: Option<io::Error>,
}

impl<'a> Unpacked<'a> {
    pub(super) fn new(input: impl Read + Send + 'a, threads: usize) -> Unpacked<'a> {
        let (jobs, receiver) = sync_channel::<(Vec<u8>, SyncSender<Group>)>(threads * GROUPS_PER_THREAD);
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = receiver.clone();
            // These threads end when the sender is dropped, and hold only groups.
            thread::spawn(move || {
                loop {
                    let job = receiver.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok((packed, sender)) = job else { return };
                    let mut text = Vec::with_capacity(4 * packed.len());
                    let error = Members::new(&packed[..]).read_to_end(&mut text).err();
                    // If the receiver is gone, the text is not needed any more.
                    let _ = sender.send((text, error));
                }
            });
        }
        Unpacked {
            input: Some(Box::new(input)),
            jobs: Some(jobs),
            pending: Default::default(),
            most: threads * GROUPS_PER_THREAD,
            current: Vec::new(),
            at: 0,
            error: None,
        }
    }

    /// Hands out groups until enough are in flight.
    fn hand_out(&mut self) {
        while self.pending.len() < self.most {
            let (Some(input), Some(jobs)) = (&mut self.input, &self.jobs) else { return };
            let (group, end) = read_group(input);
            if !group.is_empty() {
                let (sender, receiver) = sync_channel(1);
                if jobs.send((group, sender)).is_err() {
                    self.error = Some(io::Error::other("the threads that unpack have ended"));
                    self.input = None;
                    return;
                }
                self.pending.push_back(receiver);
            }
            match end {
                Ok(false) => {}
                Ok(true) => (self.input, self.jobs) = (None, None),
                Err(error) => (self.input, self.jobs, self.error) = (None, None, Some(error)),
            }
        }
    }
}

/// Reads whole members. Returns them, and whether the input has ended, or the error that ended it early.
fn read_group(input: &mut impl Read) -> (Vec<u8>, io::Result<bool>) {
    let mut group = Vec::with_capacity(GROUP + (1 << 16));
    while group.len() < GROUP {
        let begin = group.len();
        match input.by_ref().take(HEADER as u64).read_to_end(&mut group) {
            Ok(0) => return (group, Ok(true)),
            Ok(_) => {}
            Err(error) => return cut(group, begin, error),
        }
        let head = &group[begin..];
        if !is_blocked(head) {
            // Members of another kind, or a truncated member: one thread takes the whole rest.
            let rest = input.read_to_end(&mut group);
            return (group, rest.map(|_| true));
        }
        let size = usize::from(u16::from_le_bytes([head[16], head[17]])) + 1;
        let rest = size.saturating_sub(HEADER) as u64;
        match input.by_ref().take(rest).read_to_end(&mut group) {
            Ok(read) if read as u64 == rest => {}
            Ok(_) => return cut(group, begin, io::ErrorKind::UnexpectedEof.into()),
            Err(error) => return cut(group, begin, error),
        }
    }
    (group, Ok(false))
}

fn cut(mut group: Vec<u8>, begin: usize, error: io::Error) -> (Vec<u8>, io::Result<bool>) {
    group.truncate(begin);
    (group, Err(error))
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            self.hand_out();
            let Some(next) = self.pending.pop_front() else {
                return self.error.take().map_or(Ok(0), Err);
            };
            let (text, error) = next.recv().map_err(|_| io::Error::other("a thread that unpacks has ended"))?;
            (self.current, self.at) = (text, 0);
            if error.is_some() {
                (self.input, self.jobs, self.error) = (None, None, error);
                self.pending.clear();
            }
        }
        let read = buffer.len().min(self.current.len() - self.at);
        buffer[..read].copy_from_slice(&self.current[self.at..self.at + read]);
        self.at += read;
        Ok(read)
    }
}
