! Passes complex columns around a ring, and finds the largest element; prints "ring: N processes".
program ring
    implicit none
    integer :: me, all, context, rows, columns, row, column, i
    integer :: places(1), across(1)
    integer, external :: blacs_pnum
    double precision, external :: dwalltime00
    double precision :: began, value(1)
    complex(kind(1d0)) :: sent(7, 3), got(5, 3)

    call blacs_pinfo(me, all)
    began = dwalltime00()
    call blacs_get(-1, 0, context)
    call blacs_gridinit(context, 'Column-major', all, 1)
    call blacs_gridinfo(context, rows, columns, row, column)
    if (rows /= all .or. columns /= 1 .or. row /= me .or. column /= 0) call fail('gridinfo')
    if (blacs_pnum(context, row, column) /= me) call fail('pnum')

    sent = (0, 0)
    got = (-1, -1)
    do i = 1, 3
        sent(1:4, i) = cmplx(me, i, kind(1d0))
    end do
    call zgesd2d(context, 4, 3, sent, 7, mod(me + 1, all), 0)
    call zgerv2d(context, 4, 3, got, 5, mod(me + all - 1, all), 0)
    do i = 1, 3
        if (any(got(1:4, i) /= cmplx(mod(me + all - 1, all), i, kind(1d0)))) call fail('an element')
    end do
    if (any(got(5, :) /= (-1, -1))) call fail('what lies between two columns')

    value = -me
    call dgamx2d(context, 'Column', 'I', 1, 1, value, 1, places, across, 1, -1, -1)
    if (value(1) /= 1 - all .or. places(1) /= all - 1 .or. across(1) /= 0) call fail('the largest')

    call blacs_barrier(context, 'All')
    if (dwalltime00() < began) call fail('the clock')
    call blacs_gridexit(context)
    if (me == 0) print '(a, i0, a)', 'ring: ', all, ' processes'
    call blacs_exit(0)
contains
    subroutine fail(what)
        character(*), intent(in) :: what
        write (0, *) 'FAIL: ', what
        stop 9
    end subroutine fail
end program ring
