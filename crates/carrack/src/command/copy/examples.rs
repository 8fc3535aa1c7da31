//! Lines that the help of `copy` and `sync` shows.

/// Of `copy`.
pub const COPY: &str = "\
Examples:
  carrack run42 cluster:/scratch/                makes /scratch/run42 on the host cluster
  carrack cluster:results/ here                  puts the contents of results into here
  carrack siteA:/data/run42 siteB:/data/         the bytes go straight from A to B
  carrack -n -v run42/ cluster:/scratch/run42    shows what would be copied
  carrack --exclude '*.tmp' --bwlimit 100MB run42 cluster:/scratch/
  carrack run42 @archive:/2026/                  to an endpoint of a service
  tar -c run42 | carrack - cluster:run42.tar     from standard input";

/// Of `sync`.
pub const SYNC: &str = "\
Examples:
  carrack sync run42/ cluster:/scratch/run42                   sends what is new or changed
  carrack sync -n -v --delete run42/ cluster:/scratch/run42    shows what would be sent and deleted
  carrack sync --delete --exclude '*.tmp' run42/ cluster:/scratch/run42";
