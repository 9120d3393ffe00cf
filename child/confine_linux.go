package child

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"syscall"

	"github.com/landlock-lsm/go-landlock/landlock"
	landlocksys "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// systemMeasures are those that other systems have not.
func systemMeasures(e *errand) []measure {
	return []measure{
		{"no_new_privs", func() error { return unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) }},
		{"oom_score_adj=" + strconv.Itoa(oomScoreAdj), func() error { return preferForOOM(os.Getpid()) }},
		// The signal was set for the thread that the process began with, which
		// need not be this one.
		{"dies_with_hookd", func() error {
			if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
				return err
			}
			if os.Getppid() != e.Parent { // it has died before
				os.Exit(helperExit)
			}
			return nil
		}},
	}
}

// closeOnExec closes what hookd has inherited itself: its own files are closed
// anyway.
func closeOnExec() error {
	err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) { // before Linux 5.11
		return closeEach()
	}
	return err
}

// enclose puts the thread into the sandbox, as far as the kernel can.
func (f *fence) enclose() (active, missing []string, err error) {
	abi := landlockABI()
	if abi == 0 {
		return nil, gapsOf(abi, f.Network), nil
	}
	rules := []landlock.Rule{landlock.RWFiles(os.DevNull).IgnoreIfMissing()}
	for _, path := range f.Common {
		rules = append(rules, readable(path).IgnoreIfMissing())
	}
	for _, path := range f.Read {
		rules = append(rules, readable(path))
	}
	for _, path := range f.Write {
		rules = append(rules, writable(path, abi))
	}
	handled := landlock.V11
	if f.Network {
		handled.HandledAccessNet = 0
		handled.HandledAccessFS &^= landlocksys.AccessFSResolveUnix
		handled.Scoped &^= landlocksys.ScopeAbstractUnixSocket
	}
	ruleset, flags, err := handled.BestEffort().EnableLoggingForSubprocesses().NewRulesetFD(rules...)
	if err == nil {
		err = landlocksys.LandlockRestrictSelf(ruleset, flags) // closed with the rest
	}
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: %w", err)
	}
	return []string{"landlock=" + strconv.Itoa(abi)}, gapsOf(abi, f.Network), nil
}

// readable lets a file, or all of a folder, be read and executed.
func readable(path string) landlock.FSRule {
	if isFolder(path) {
		return landlock.RODirs(path)
	}
	return landlock.ROFiles(path)
}

// writable lets a file, or all of a folder, be changed too. Its Unix sockets
// may be connected to.
func writable(path string, abi int) landlock.FSRule {
	if !isFolder(path) {
		return landlock.RWFiles(path).WithResolveUnix()
	}
	rule := landlock.RWDirs(path).WithResolveUnix()
	if abi >= 2 { // a kernel that can't grant it would make the library grant everything
		rule = rule.WithRefer()
	}
	return rule
}

func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// landlockABI is what the kernel can enforce, by the number of its interface;
// 0 is nothing.
func landlockABI() int {
	abi, err := landlocksys.LandlockGetABIVersion()
	if err != nil {
		return 0
	}
	if abi >= 6 { // early kernels did not keep signals in
		if fixed, err := landlocksys.LandlockGetErrata(); err != nil || fixed&2 == 0 {
			return 5
		}
	}
	return abi
}

// gaps says what of a sandbox this kernel does not enforce.
func gaps(network bool) []string { return gapsOf(landlockABI(), network) }

func gapsOf(abi int, network bool) (found []string) {
	if abi == 0 {
		return []string{"sandbox: nothing of it is enforced, because this kernel has no Landlock or does not enable it"}
	}
	for _, g := range []struct {
		abi     int
		network bool // it matters only without network
		what    string
	}{
		{3, false, "cutting files short that may only be read"},
		{5, false, "ioctl on devices"},
		{6, false, "signals to other processes"},
		{4, true, "TCP"},
		{6, true, "abstract Unix sockets"},
		{9, true, "Unix sockets by their path"},
		{10, true, "UDP"},
	} {
		if abi < g.abi && !(g.network && network) {
			found = append(found, fmt.Sprintf("sandbox: %s (needs Landlock %d, this kernel has %d)", g.what, g.abi, abi))
		}
	}
	if !network {
		found = append(found, "sandbox: network other than TCP and UDP, such as Multipath TCP and raw sockets (Landlock has no rule for it)")
	}
	return found
}
