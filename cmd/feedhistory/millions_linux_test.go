package main

import (
	"os"
	"syscall"
)

// maxRSS returns the most memory a process had, in bytes.
func maxRSS(p *os.ProcessState) int64 { return p.SysUsage().(*syscall.Rusage).Maxrss << 10 }
