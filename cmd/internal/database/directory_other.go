//go:build !unix || solaris || illumos || aix

package database

// lockDirectory does nothing where directories cannot be locked.
func lockDirectory(string, bool) (unlock func()) { return func() {} }
