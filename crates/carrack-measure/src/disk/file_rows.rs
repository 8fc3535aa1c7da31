//! Rows about many small files: create, look up and delete, in order and in no order.

use std::io;

use carrack_sys::dir::{Dir, Links};

use super::order::Order;
use super::plan::Step;
use super::rows::{rate_labels, row_of};
use crate::error::Error;
use crate::result::{Row, value};
use crate::scratch::{self, Scratch};
use crate::workers::{self, Job, Operate};

/// What is done with each file.
#[derive(Clone, Copy)]
enum Act {
    Create,
    Stat,
    Delete,
}

/// Creates, looks up and deletes empty files in a directory for each thread, first in the order of their names, then in
/// no order, as bonnie++ does.
///
/// # Errors
/// What the system says, and being stopped.
pub fn measure(
    scratch: &Scratch,
    step: &Step,
    files: u64,
    stop: &(dyn Fn() -> bool + Sync),
) -> Result<Vec<Row>, Error> {
    let mut rows = Vec::new();
    for (order_name, order) in [("sequential", Order::Forward), ("random", Order::Random { seed: files })] {
        let directories = directories(scratch, step.threads).map_err(Error::while_doing("make a directory"))?;
        let mut count = files / step.threads as u64;
        for (name, act) in [("file-create", Act::Create), ("file-stat", Act::Stat), ("file-delete", Act::Delete)] {
            // In no order, names of the whole range are made; looked up and deleted are those that are there.
            let created = count;
            let make = |number: usize, _: usize| operate(&directories[number], act, order, files, created);
            let job = Job {
                files: step.threads,
                depth: 1,
                operations: count,
                claim: 1,
                // All that were created are deleted.
                limit: step.limit.filter(|_| !matches!(act, Act::Delete)),
                rate: None,
                make: &make,
                finish: &|_| Ok(()),
                stop,
            };
            let mut done = workers::run(&job).map_err(Error::while_doing(name))?;
            if done.stopped {
                return Err(Error::Stopped);
            }
            if matches!(act, Act::Create) {
                count = done.operations_least;
            }
            let conditions =
                vec![("order".to_owned(), order_name.to_owned()), ("threads".to_owned(), step.threads.to_string())];
            done.bytes = 0;
            let mut row = row_of(name, conditions, &done);
            rate_labels(&mut row, &done);
            // Operations, not bytes, were counted over time.
            row.values.retain(|(name, _)| name != value::SETTLED_BYTES_PER_SECOND);
            row.series = None;
            rows.push(row);
        }
        for (number, directory) in directories.iter().enumerate() {
            let gone =
                scratch::empty(directory).and_then(|()| scratch.directory().remove_dir(&Scratch::files_name(number)));
            gone.map_err(Error::while_doing("remove a directory"))?;
        }
    }
    Ok(rows)
}

fn directories(scratch: &Scratch, count: usize) -> io::Result<Vec<Dir>> {
    let make = |number| {
        let name = Scratch::files_name(number);
        scratch.directory().make_dir(&name, 0o700)?;
        scratch.directory().open_dir(&name, Links::Refuse)
    };
    (0..count).map(make).collect()
}

/// One operation for each file; it counts as one byte, so that its rate over time is judged as that of bytes is.
fn operate<'a>(directory: &'a Dir, act: Act, order: Order, names: u64, created: u64) -> Operate<'a> {
    Box::new(move |at| {
        // In no order means in another one than they were created in, too.
        let at = match (order, act) {
            (Order::Random { seed }, Act::Stat | Act::Delete) => Order::Random { seed: !seed }.record(at, created),
            _ => at,
        };
        let name = format!("{:08x}", order.record(at, names)).into_bytes();
        match act {
            Act::Create => directory.create_new(&name).map(drop)?,
            Act::Stat => directory.stat_at(&name).map(drop)?,
            Act::Delete => directory.unlink(&name)?,
        }
        Ok(1)
    })
}
