package shell

import (
	"path"
	"slices"
	"strings"
)

// recipe is a program that runs what files of a project say, without being told
// their names.
type recipe struct {
	// sub are words of which one stands first; "" = whatever does, and what stands
	// in not does not.
	sub, not string
	// files are patterns for the names of such files.
	files string
	// operands says that it may be given names of files, too.
	operands bool
}

const (
	testScripts = "package.json *.test.* *.spec.* *_test.*"
	makefiles   = "[Mm]akefile GNUmakefile *.mk *.mak"
	dockerfiles = "Dockerfile* *.Dockerfile Containerfile* compose*.y*ml docker-compose*.y*ml docker-bake.*"
)

// recipeOf returns the recipe of a name in lower case, or nil.
func recipeOf(name string) *recipe {
	switch name {
	case "make", "gmake", "bmake":
		return &recipe{files: makefiles}
	case "npm":
		return &recipe{sub: "run run-script rum urn test t tst start stop restart", files: testScripts}
	case "yarn", "pnpm":
		return &recipe{not: "install add remove i ci up upgrade update init config cache why list ls info outdated audit import dlx link unlink login logout publish pack store fetch set --version --help -v", files: testScripts}
	case "bun":
		return &recipe{not: "install add remove i ci update init link unlink pm --version --help", files: testScripts, operands: true}
	case "deno":
		return &recipe{sub: "run test task bench serve", files: "deno.json* " + testScripts, operands: true}
	case "jest", "vitest", "mocha", "ava", "playwright", "cypress":
		return &recipe{files: testScripts + " *.config.*", operands: true}
	case "eslint", "prettier", "stylelint", "babel", "postcss", "tailwindcss", "tsup", "nuxt", "astro":
		return &recipe{files: "*.config.* .eslintrc* .prettierrc* .stylelintrc* .babelrc*"}
	case "webpack", "vite", "rollup", "gulp", "grunt", "nx", "turbo", "lerna", "lint-staged", "wrangler", "next":
		return &recipe{files: "package.json *.config.* gulpfile.* Gruntfile.* turbo.json nx.json project.json"}
	case "go":
		return &recipe{sub: "run test generate", files: "*.go"}
	case "cargo":
		return &recipe{sub: "run r test t bench build b check c clippy doc d install nextest watch miri rustc", files: "Cargo.toml *.rs"}
	case "pytest", "py.test", "tox", "nox", "behave", "unittest":
		return &recipe{files: "test_*.py *_test.py conftest.py tox.ini noxfile.py setup.py pytest.ini setup.cfg pyproject.toml", operands: true}
	case "rake", "thor":
		return &recipe{files: "Rakefile *.rake *.thor"}
	case "rspec":
		return &recipe{files: "*_spec.rb spec_helper.rb .rspec", operands: true}
	case "just":
		return &recipe{files: "[jJ]ustfile .justfile *.just"}
	case "task", "go-task":
		return &recipe{files: "[Tt]askfile*"}
	case "gradle", "gradlew":
		return &recipe{files: "*.gradle *.gradle.kts gradle.properties"}
	case "mvn", "mvnw":
		return &recipe{files: "pom.xml"}
	case "sbt", "mill", "ant", "scons", "waf", "bazel", "buck2", "ninja", "meson", "mix", "invoke", "fab", "earthly", "dagger", "mage":
		return &recipe{files: "build.sbt build.sc build.xml SConstruct wscript BUILD BUILD.bazel WORKSPACE* *.bzl build.ninja meson.build mix.exs *.exs tasks.py fabfile.py Earthfile magefile.go"}
	case "cmake", "ctest", "cpack":
		return &recipe{not: "-E --version --help", files: "CMakeLists.txt *.cmake CMakePresets.json " + makefiles + " build.ninja"}
	case "terraform", "tofu", "pulumi":
		return &recipe{sub: "apply plan init up", files: "*.tf *.tf.json Pulumi.yaml"}
	case "pre-commit":
		return &recipe{files: ".pre-commit-config.yaml"}
	case "ansible-playbook", "ansible":
		return &recipe{files: "ansible.cfg", operands: true}
	case "docker", "podman", "nerdctl":
		return &recipe{sub: "build compose buildx builder", files: dockerfiles}
	case "docker-compose", "podman-compose":
		return &recipe{sub: "up build run create start", files: dockerfiles}
	case "systemctl":
		return &recipe{sub: "start restart enable reload daemon-reload reenable try-restart isolate", files: "*.service *.timer *.socket *.path *.conf"}
	case "launchctl":
		return &recipe{files: "*.plist"}
	case "direnv":
		return &recipe{files: ".envrc"}
	case "foreman", "overmind", "honcho", "goreman":
		return &recipe{files: "Procfile*"}
	case "vagrant":
		return &recipe{sub: "up provision reload", files: "Vagrantfile"}
	}
	return nil
}

// project is a program that was found to run what the project's files say.
type project struct {
	text  string
	files string   // the patterns of their names
	words []string // its arguments, as paths
	own   bool     // files of the user, which no archive or clone brings
}

// maxProjects bounds how many of them, and of the folders that files are brought
// to, are kept. With more the line is unresolved.
const maxProjects = 64

// recipes notes programs that run files which they are not told by name.
func (r *reader) recipes(name string, c call) {
	rec := recipeOf(name)
	if rec == nil {
		return
	}
	args := c.args[1:]
	switch sub := subWord(args); {
	case name == "npm" && anyWord(args, installs), hasWord("yarn pnpm bun", name) && (sub == "" || hasWord(installs, sub)):
		// What is installed is not looked at, but for scripts that the line writes.
		r.ownFiles("package.json .npmrc .yarnrc* bunfig.toml", c)
		if name != "npm" {
			return
		}
	}
	switch sub := subWord(args); {
	case rec.sub != "" && !anyWord(args, rec.sub):
		return
	case rec.not != "" && len(args) > 0 && (hasWord(rec.not, sub) || sub == "" && hasWord(rec.not, args[0].text)):
		return
	case anyWord(args, "compose") && !anyWord(args, "up build run create start restart watch"):
		return
	}
	for i := range args {
		if t := args[i].text; rec.operands && !strings.HasPrefix(t, "-") && path.Ext(t) != "" && strings.Trim(t, "./") != "" {
			r.ran = append(r.ran, t)
		}
	}
	r.project(rec.files, c)
}

// The files that shells and git read by themselves.
const (
	startFiles = ".bashrc .bash_profile .bash_login .bash_aliases .profile .zshrc .zshenv .zprofile .zlogin"
	gitFiles   = ".gitconfig .gitattributes .git/config hooks/* .husky/*"
)

// ownFiles notes a program that runs what files of its user say.
func (r *reader) ownFiles(files string, c call) {
	if n := len(r.projects); n < maxProjects {
		r.project(files, c)
		r.projects[n].own = true
		return
	}
	r.project(files, c)
}

func (r *reader) project(files string, c call) {
	if len(r.projects) >= maxProjects {
		r.unresolved("the line is too long to be followed")
		return
	}
	p := project{text: joinText(c.args), files: files}
	for i := range c.args[1:] {
		if w := cleanWord(c.args[1+i].text); w != "." {
			p.words = append(p.words, w)
		}
	}
	r.projects = append(r.projects, p)
}

// installs are words behind which packages are installed.
const installs = "install i ci add"

// subWord is firstWord behind options with a value that many programs have.
func subWord(args []field) string {
	for i := 0; i < len(args); i++ {
		switch t := args[i].text; {
		case hasWord("-C --prefix --cwd --dir --filter -F --workspace -w --manifest-path --config --context -c -H --host -f --file -p --project-name --profile --env-file -Z --color --directory", t):
			i++
		case !strings.HasPrefix(t, "-"):
			return t
		}
	}
	return ""
}

// firstWord returns the first argument that is no option.
func firstWord(args []field) string {
	for i := range args {
		if !strings.HasPrefix(args[i].text, "-") {
			return args[i].text
		}
	}
	return ""
}

func anyWord(args []field, list string) bool {
	return slices.ContainsFunc(args, func(f field) bool { return hasWord(list, f.text) })
}

// brings notes that files come into a folder whose names are not said. dir is ""
// where the folder is not known either.
func (r *reader) brings(dir field) {
	to := path.Clean(dir.text)
	if dir.text == "" || dir.unknown && dir.unsafe {
		to = ""
	}
	switch {
	case slices.Contains(r.arrivals, to):
	case len(r.arrivals) >= maxProjects:
		r.unresolved("the line is too long to be followed")
	default:
		r.arrivals = append(r.arrivals, to)
	}
}

// here is the folder in which a line runs.
func here() field { return field{text: "."} }

// bringsOf notes what a program brings: by its name where that is said.
func (r *reader) bringsOf(name string, c call) {
	args := c.args[1:]
	switch name {
	case "cd", "pushd", "popd", "chdir", "z":
		r.moved = true
	case "curl":
		r.curl(args)
	case "wget", "wget2":
		r.wget(args)
	case "aria2c", "axel", "lwp-download", "ftp", "lftp", "sftp", "rclone", "s3cmd", "unsquashfs", "gdown", "yt-dlp", "youtube-dl", "degit":
		r.brings(field{})
	case "http", "https", "xh":
		if anyWord(args, "-d --download") {
			r.brings(here())
		}
	case "tar", "gtar", "bsdtar":
		r.untar(args)
	case "unzip":
		if !hasShort(args, 'l') && !hasShort(args, 'p') && !hasShort(args, 't') && !hasShort(args, 'v') {
			r.bringsTo(args, "-d", here())
		}
	case "7z", "7za", "7zr", "unrar", "rar", "jar", "ar", "dpkg", "dpkg-deb", "cpio", "pax":
		if len(args) > 0 && (strings.HasPrefix(args[0].text, "x") || hasWord("e -x -R --extract", args[0].text)) ||
			(name == "cpio" || name == "pax") && (hasShort(args, 'i') || hasShort(args, 'p') || hasShort(args, 'r') || anyWord(args, "--extract")) {
			r.brings(field{})
		}
	case "unar", "dtrx", "atool", "aunpack", "uncompress-all":
		r.brings(here())
	case "gunzip", "bunzip2", "unxz", "unzstd", "unlz4", "uncompress", "gzip", "bzip2", "xz", "zstd", "lz4", "brotli":
		r.unpack(name, args)
	case "svn", "hg", "bzr", "fossil", "jj":
		if anyWord(args, "checkout co export clone branch switch") {
			r.brings(field{})
		}
	case "gh", "glab":
		if len(args) > 1 && hasWord("clone checkout co download view", args[1].text) && args[1].text != "view" {
			r.brings(field{})
		}
	case "docker", "podman", "kubectl", "oc", "gsutil", "aws", "gcloud", "az", "mc", "lxc", "incus", "multipass", "limactl":
		if anyWord(args, "cp rsync sync copy download pull get mv") && anyRemote(args) {
			r.brings(field{})
		}
	case "scp", "rsync", "rcp":
		if len(args) > 1 && !isRemote(&args[len(args)-1]) && anyRemote(args[:len(args)-1]) {
			r.brings(args[len(args)-1])
		}
	case "patch":
		if c.in.given {
			r.brings(here())
		}
	case "openssl":
		for i := range args[:max(0, len(args)-1)] {
			if args[i].text == "-out" {
				r.writes(args[i+1])
			}
		}
	case "git":
		r.gitBrings(c)
	}
}

// isRemote reports whether a word names something on another machine.
func isRemote(f *field) bool {
	i := strings.IndexByte(f.text, ':')
	return i > 0 && !strings.Contains(f.text[:i], "/") && !strings.HasPrefix(f.text, "-")
}

func anyRemote(args []field) bool {
	for i := range args {
		if isRemote(&args[i]) || strings.Contains(args[i].text, "://") || args[i].unknown && args[i].unsafe && args[i].blind {
			return true
		}
	}
	return false
}

const curlOptions options = "#0123456789aBfgGIijJkLlMnNOpqRsSvVZo:D:c:H:X:d:u:A:b:e:F:T:m:w:x:y:Y:C:E:K:r:t:U:z:Q:P: --remote-name --remote-name-all --remote-header-name --output= --output-dir= --create-dirs --fail --location --silent --show-error --compressed --head --config= --url= --dump-header= --cookie-jar= --cookie= --header= --request= --data= --data-raw= --data-binary= --data-urlencode= --json= --form= --user= --user-agent= --referer= --max-time= --connect-timeout= --retry= --retry-delay= --retry-max-time= --write-out= --proxy= --upload-file= --cacert= --cert= --key= --resolve= --range= --limit-rate= --insecure --verbose --get --include --progress-bar --no-progress-meter --continue-at= --proto= --tlsv1.2 --http1.1 --http2 --ipv4 --ipv6 --parallel"

// curl follows curl -O, which names a file as its address ends.
func (r *reader) curl(args []field) {
	got, addresses := curlOptions.permuted(args)
	named := false
	for _, opt := range got {
		switch opt.name {
		case "J", "remote-header-name", "K", "config":
			r.brings(here()) // what they are called is said elsewhere
		case "O", "remote-name", "remote-name-all":
			named = true
		case "url":
			addresses = append(addresses, opt.value)
		}
	}
	if named {
		r.fetched(addresses, field{})
	}
}

const wgetOptions options = "bcdFhHkKlLmnNpqrSvVxYO:P:o:a:i:U:t:T:w:Q:e:A:R:D:I:X:B:l: --quiet --continue --no-check-certificate --no-verbose --show-progress --timestamping --no-clobber --recursive --mirror --output-document= --directory-prefix= --output-file= --append-output= --input-file= --user-agent= --tries= --timeout= --wait= --execute= --accept= --reject= --header= --post-data= --user= --password= --content-disposition --trust-server-names --server-response --spider --https-only --level= --no-parent"

func (r *reader) wget(args []field) {
	got, addresses := wgetOptions.permuted(args)
	dir := field{}
	for _, opt := range got {
		switch opt.name {
		case "O", "output-document", "spider":
			return
		case "P", "directory-prefix":
			dir = opt.value
		case "i", "input-file", "r", "recursive", "m", "mirror", "content-disposition", "trust-server-names", "e", "execute":
			r.brings(field{})
		}
	}
	r.fetched(addresses, dir)
}

// fetched notes files that are named as their addresses end.
func (r *reader) fetched(addresses []field, dir field) {
	for _, f := range addresses {
		address, _, _ := strings.Cut(f.text, "?")
		address, _, _ = strings.Cut(address, "#")
		if i := strings.Index(address, "://"); i >= 0 {
			address = address[i+3:]
		}
		base := "index.html"
		if i := strings.LastIndexByte(address, '/'); i >= 0 && i+1 < len(address) {
			base = address[i+1:]
		}
		if f.unknown && f.tail > strings.LastIndexByte(f.text, '/') || strings.ContainsAny(base, "[{*%") || base == "." || base == ".." {
			r.brings(here())
			continue
		}
		r.writes(field{text: path.Join(dir.text, base)})
	}
}

// untar follows tar, whose first word may be a bundle without a dash.
func (r *reader) untar(args []field) {
	if len(args) == 0 {
		return
	}
	first := args[0].text
	extract := !strings.HasPrefix(first, "-") && strings.IndexByte(first, 'x') >= 0
	for i := range args {
		t := args[i].text
		extract = extract || hasWord("--extract --get --extr", t) || len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.IndexByte(tarFlags(t), 'x') >= 0
	}
	if extract {
		r.bringsTo(args, "-C --directory --cd", here())
	}
	if strings.HasPrefix(first, "-") {
		return
	}
	// Behind a bundle without a dash its values stand in their order.
	values := args[1:]
	for _, letter := range []byte(first) {
		if strings.IndexByte("bfCFgHIKLNTVX", letter) < 0 {
			continue
		}
		if len(values) == 0 {
			return
		}
		if letter == 'I' || letter == 'F' {
			r.childCode(values[0], stdin{}, nil)
		}
		values = values[1:]
	}
}

// tarFlags returns the letters of a bundle before the first that has a value.
func tarFlags(t string) string {
	if i := strings.IndexAny(t, "bfCFgHIKLNTVX"); i >= 0 {
		return t[:i]
	}
	return t
}

// bringsTo notes the folder behind an option, or else the usual one.
func (r *reader) bringsTo(args []field, opts string, usual field) {
	for i := range args {
		name, val, attached := strings.Cut(args[i].text, "=")
		switch {
		case attached && hasWord(opts, name):
			r.brings(field{text: val, unknown: args[i].unknown, unsafe: args[i].unsafe})
			return
		case hasWord(opts, args[i].text) && i+1 < len(args):
			r.brings(args[i+1])
			return
		case opts[1] != '-' && strings.HasPrefix(args[i].text, opts[:2]) && len(args[i].text) > 2:
			r.brings(args[i].cutTo(2))
			return
		}
	}
	r.brings(usual)
}

// unpack follows programs that take the ending off a file's name.
func (r *reader) unpack(name string, args []field) {
	if !strings.HasPrefix(name, "un") && !strings.Contains(name, "unz") && !hasShort(args, 'd') && !anyWord(args, "--decompress --uncompress") ||
		hasShort(args, 'c') || hasShort(args, 't') || hasShort(args, 'l') || anyWord(args, "--stdout --test --list") {
		return
	}
	for _, f := range args {
		if ext := path.Ext(f.text); ext != "" && !strings.HasPrefix(f.text, "-") {
			r.writes(field{text: strings.TrimSuffix(f.text, ext)})
		} else if f.unknown || f.glob {
			r.brings(here())
		}
	}
}

// gitBrings follows the commands of git that fetch from an address.
func (r *reader) gitBrings(c call) {
	got, rest, _ := gitOptions.read(c.args[1:])
	if len(rest) == 0 {
		return
	}
	if _, ok := find(got, "C"); ok {
		r.moved = true
	}
	sub, args := rest[0].text, rest[1:]
	r.ownFiles(gitFiles, c)
	switch sub {
	case "clone":
		_, operands := gitClone.permuted(args)
		switch {
		case len(operands) > 1:
			r.brings(operands[1])
		case len(operands) == 1 && !operands[0].unknown:
			name := strings.TrimSuffix(strings.TrimSuffix(strings.TrimRight(operands[0].text, "/"), ".git"), "/")
			r.brings(field{text: path.Base(name[strings.LastIndexByte(name, ':')+1:])})
		case len(operands) == 1:
			r.brings(field{})
		}
	case "pull", "fetch":
		if from := firstWord(args); strings.ContainsAny(from, ":/$`") {
			r.brings(here())
		}
	case "apply", "am":
		if c.in.given {
			r.brings(here())
		}
	case "submodule":
		if anyWord(args, "add") {
			r.brings(field{})
		}
	}
}

// compiles notes a compiler, of whose sources the line may have written some.
func (r *reader) compiles(name string, c call) {
	if !isCompiler(name) && name != "rustc" && name != "javac" && name != "tsc" && (name != "go" || firstWord(c.args[1:]) != "build") {
		return
	}
	if name == "go" {
		r.built = append(r.built, "*.go")
	}
	for _, f := range c.args[1:] {
		if !strings.HasPrefix(f.text, "-") && path.Ext(f.text) != "" && strings.Trim(f.text, "./") != "" && len(r.built) < maxProjects {
			r.built = append(r.built, path.Base(f.text))
		}
	}
}

// isCompiler reports whether a name is that of a compiler such as gcc.
func isCompiler(name string) bool {
	name = strings.TrimRight(name, "0123456789.-")
	name = name[strings.LastIndexByte(name, '-')+1:]
	switch name {
	case "gcc", "g++", "cc", "c++", "clang", "clang++", "tcc", "icc":
		return true
	}
	return false
}

// written finds files that the line both writes or brings, and runs.
func (r *reader) written() {
	for _, ran := range r.ran {
		for _, file := range r.line.Writes {
			if sameFile(path.Base(file), path.Base(ran)) { // folders may be named in many ways
				r.unresolvedWord("a file is run that the line writes", ran)
			}
		}
	}
	if r.ranAny != "" && len(r.line.Writes)+len(r.arrivals) > 0 {
		r.unresolvedWord("a file is run that the line may have written", r.ranAny)
	}
	for _, file := range r.line.Writes {
		for _, p := range r.projects {
			if matchesAny(p.files, file) {
				r.unresolvedWord("what runs is said in a file that the line writes, "+file, p.text)
			}
		}
		if slices.ContainsFunc(r.built, func(source string) bool { return matchesAny(source, file) }) {
			r.arrivals = append(r.arrivals, "") // the program may be anywhere
		}
	}
	for _, dir := range r.arrivals {
		for _, ran := range r.ran {
			if r.cameTo(dir, ran) {
				r.unresolvedWord("a file is run that the line may have brought", ran)
			}
		}
		for _, p := range r.projects {
			if p.own {
				continue
			}
			if dir == "" || dir == "." || r.moved || slices.ContainsFunc(p.words, func(w string) bool { return within(dir, w) }) {
				r.unresolvedWord("what runs is said in a file that the line may have brought", p.text)
			}
		}
	}
	for i := range r.line.Commands {
		name := r.line.Commands[i].Name
		written := func(file string) bool {
			return path.Base(file) == name && (r.searched || strings.HasSuffix(path.Dir(file), "bin"))
		}
		if r.searched && len(r.arrivals) > 0 || slices.ContainsFunc(r.line.Writes, written) {
			r.unresolvedWord("a command is looked for where the line writes", name)
		}
	}
}

// sameFile reports whether a name is that of a file, to some system, or matches
// it as a pattern.
func sameFile(file, name string) bool {
	ok, err := path.Match(name, file)
	if start, some := strings.CutSuffix(file, "*"); some && strings.HasPrefix(name, start) { // see split
		return true
	}
	return ok && err == nil || strings.EqualFold(file, name)
}

// matchesAny reports whether the end of a path matches one of the patterns.
func matchesAny(patterns, file string) bool {
	file = path.Clean(file)
	base := path.Base(file)
	for p := range strings.FieldsSeq(patterns) {
		name := base
		if strings.IndexByte(p, '/') >= 0 {
			name = path.Base(path.Dir(file)) + "/" + base
		}
		if ok, _ := path.Match(p, name); ok {
			return true
		}
	}
	return false
}

// cameTo reports whether a file may be one of those that came into a folder.
func (r *reader) cameTo(dir, file string) bool {
	clean := path.Clean(file)
	switch {
	case within(dir, clean):
		return true
	case strings.HasPrefix(clean, "/") && isSystem(clean):
		return false
	case strings.HasPrefix(clean, "/"), strings.HasPrefix(clean, "~"), strings.HasPrefix(clean, "$"):
		return dir == "" || !strings.HasPrefix(dir, "/") // where the line runs is not known
	}
	return dir == "" || dir == "." || r.moved
}

// within reports whether a clean path leads into a folder.
func within(dir, clean string) bool {
	return dir != "" && dir != "." && strings.HasPrefix(clean, strings.TrimSuffix(dir, "/")) &&
		(len(clean) == len(dir) || dir == "/" || clean[len(dir)] == '/')
}

// cleanWord returns an argument, or the value of an option, as a path.
func cleanWord(arg string) string {
	if i := strings.IndexByte(arg, '='); i >= 0 && strings.HasPrefix(arg, "-") {
		arg = arg[i+1:]
	}
	return path.Clean(arg)
}

// isSystem reports whether a file stands where only systems put programs.
func isSystem(file string) bool {
	for _, dir := range []string{"/bin/", "/sbin/", "/usr/", "/lib", "/opt/homebrew/", "/nix/", "/System/", "/run/current-system/", "/snap/bin/", "/etc/"} {
		if strings.HasPrefix(file, dir) {
			return true
		}
	}
	return false
}
