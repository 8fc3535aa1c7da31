//! What the service knows: tasks, endpoints, users, tokens, timers, events. These types are the documents of the API,
//! the rows of the ledger and what the command line prints. Pure data; field names are the JSON names.

mod address;
mod bench;
mod documents;
mod endpoint;
mod endpoint_health;
mod estimate;
mod event;
mod faults;
mod files;
mod identity;
mod in_flight;
mod item_csv;
mod leftovers;
mod node;
mod option_schema;
mod options;
mod overview;
mod paths;
mod percent;
mod plan;
mod problem;
mod retryable;
mod secret;
mod task;
mod text_schema;
mod timer;
mod upload;
mod visit;
mod words;

pub use address::is_of_this_host;
pub use bench::{BenchFailure, BenchKind, BenchResult, BenchRow, BenchState, BenchStatus};
pub use documents::{
    ActedTask, DryRun, EndpointCheck, EndpointTest, EndpointUpdate, KnownBy, Listed, Login, LoginLink, LoginRequest,
    MadeGrant, MadeToken, NewEndpoint, NewGrant, NewTimer, NewToken, NewUser, PasswordChange, ReceiptSigner, TaskAct,
    TaskActed, TaskActs, TaskClone, TaskCount, TaskItem, TaskRetry, TaskSelection, TaskUpdate, TimerUpdate, UserUpdate,
    Whoami,
};
pub use endpoint::{Endpoint, EndpointDefaults, EndpointLimits, EndpointLocation, RateWindow};
pub use endpoint_health::{EndpointFault, EndpointHealth, EndpointTested, HealthState};
pub use estimate::Estimate;
pub use event::{Event, EventKind};
pub use faults::{FaultBurst, FaultCode, FaultFigures, FaultPlace, FaultStatistics, PlaceKind};
pub use files::{
    DiskUsage, FileDigest, FileEntry, FileFailure, FileKind, FileListing, FileProperties, FileRename, FileWindow,
    ListingState, ListingStatus, NewDirectory, NewListing, PathFailure, SortField, SumRequest, UsageRequest, text_of,
};
pub use identity::{Ceilings, Role, Scope, TokenRow, TokenUse, User, Verb};
pub use in_flight::{InFlight, TaskInFlight};
pub use item_csv::{ITEM_CSV_HEADINGS, csv_field};
pub use leftovers::{TaskLeftover, TaskLeftovers, UnknownLeftovers};
pub use node::{KeptTest, NodeStatus, StorageStatus};
pub use options::{
    LEFT_OUT, OptionChoice, OptionDefault, OptionGroup, OptionKind, OptionPlace, TaskOption, TaskOptionTable,
    task_options,
};
pub use overview::{AuditLine, FailureFigures, Overview, PairFigures, StateCount, Windowed};
pub use paths::{PathResult, PathStatus, PathWay};
pub use percent::percent;
pub use plan::{Planned, RunGuard, TaskPlan};
pub use problem::{Problem, ProblemCode};
pub use secret::{Secret, keep_out_of_cores};
pub use task::{
    Blocked, BlockedCause, CheckTally, DIFFERENCES, Fence, ItemState, NewTask, Notice, Pair, Progress, Rates, Task,
    TaskFailure, TaskKind, TaskOptions, TaskSort, TaskState,
};
pub use timer::{Overlap, Timer, TimerSchedule, TimerState};
pub use upload::{NewUpload, Upload, UploadExisting, UploadState};
pub use visit::{EndVisit, FaultMeaning, VisitedDirectory, merge_visits, parent};
pub(crate) use words::word_enum;

/// A new identifier: UUID version 7, which sorts by the time it was made.
pub fn new_id() -> String {
    uuid::Uuid::now_v7().to_string()
}
