// Package console is the page on a terminal at which a person answers
// approvals: what shall run, who asks, how long there is time, and keys for yes
// and no.
//
// What agents say can't move the cursor, hide a part of itself or pretend to be
// a part of the page: [Escape] makes everything visible that a terminal would
// act upon or not show, long values are paged and said to go on, and each line
// of them stands behind a bar.
//
// [Page] is what is shown and what keys mean, as plain data; [Run] brings it to
// a terminal.
package console
