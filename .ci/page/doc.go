// Package page tests the page for people who do not read Go, which ./build makes of the
// READMEs with Hugo, and its feed of news.
package page
